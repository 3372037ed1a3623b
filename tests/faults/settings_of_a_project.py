"""The settings of tests, with Celery's default for a project: it closes Django's connection around each task."""

from settings.test import *  # noqa: F403

CELERY_DB_REUSE_MAX = None
