"""The WSGI application of the experiment `hooks`: the product's, with a bare view beside its own."""

from django.conf import settings

from harbor_refresh.wsgi import application

settings.ROOT_URLCONF = "benchmarks.hook_urls"

__all__ = ["application"]
