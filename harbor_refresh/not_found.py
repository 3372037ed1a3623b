"""The page for an address that does not exist. It is the same in every environment; Django's own page of the
development settings lists every address that there is."""

from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, HttpResponsePermanentRedirect
from django.shortcuts import render
from django.urls import Resolver404, resolve
from django.utils.deprecation import MiddlewareMixin
from django.views.decorators.csrf import csrf_exempt


@csrf_exempt
def not_found(request: HttpRequest, *args: Any, **options: Any) -> HttpResponse:
    """Answer every address that no other URL matches. One that lacks only its final slash is redirected, as in
    Django."""
    if settings.APPEND_SLASH and request.method in ("GET", "HEAD") and not request.path_info.endswith("/"):
        try:
            is_known = resolve(f"{request.path_info}/").func is not not_found
        except Resolver404:
            is_known = False
        if is_known:
            return HttpResponsePermanentRedirect(request.get_full_path(force_append_slash=True))
    return render(request, "404.html", status=404)


class NotFoundPages(MiddlewareMixin):
    """Answer a view that finds nothing with the same page."""

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        return render(request, "404.html", status=404) if isinstance(exception, Http404) else None
