"""Gunicorn's configuration: our worker, and log lines in the same place and format as ours.

`gunicorn -c python:harbor_refresh.logs.for_gunicorn harbor_refresh.wsgi:application`. An access line
leaves out the query, which may hold private words of a search, and the headers of the client.
"""

import os
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "settings.dev")

from django.conf import settings  # it reads the variable above

worker_class = "harbor_refresh.web.worker.WebWorker"
access_log_format = "%(h)s %(m)s %(U)s %(s)s %(B)s bytes %(M)s ms %({x-request-id}o)s"
logconfig_dict: dict[str, Any] = {
    **settings.LOGGING,
    "loggers": {
        **settings.LOGGING["loggers"],
        # without handlers of their own, so that the root's format applies
        "gunicorn.error": {"level": "INFO", "handlers": [], "propagate": True},
        "gunicorn.access": {"level": "INFO", "handlers": [], "propagate": True},
    },
}
