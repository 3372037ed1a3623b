"""The settings of tests with Celery's default for a project, and with Django's pool of connections."""

from settings.test import *  # noqa: F403
from settings.test import DATABASES

CELERY_DB_REUSE_MAX = None
DATABASES["default"] |= {"CONN_MAX_AGE": 0, "OPTIONS": {**DATABASES["default"].get("OPTIONS", {}), "pool": True}}
