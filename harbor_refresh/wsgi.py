"""The WSGI application, for gunicorn."""

import os

from django.core.wsgi import get_wsgi_application

from harbor_refresh.executions.conf.startup import exit_on_bad_settings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "settings.dev")

application = get_wsgi_application()
exit_on_bad_settings(tags=None)
