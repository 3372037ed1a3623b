"""The WSGI application, for gunicorn."""

import os

from django.core.wsgi import get_wsgi_application

from harbor_refresh.start import refuse_what_cannot_work

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "settings.dev")

application = get_wsgi_application()
refuse_what_cannot_work()
