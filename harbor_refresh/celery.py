"""The Celery application: configured by Django's settings, with tasks/celery_tasks.py."""

import os
from logging.config import dictConfig
from typing import Any

from celery import Celery, signals
from kombu import Queue

from harbor_refresh.executions.conf.startup import exit_on_bad_settings
from harbor_refresh.tasks.broker.amqp_connection import mend_connections
from harbor_refresh.tasks.broker.celery_queues import JOBS, QUEUES, ROUTES

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "settings.dev")
# Celery would have Django check all that it knows, pages included, which no worker serves. That takes a third of a
# worker's start, and its messages end no worker. Our own checks are made below, and they do.
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")

app = Celery("harbor_refresh")
app.config_from_object("django.conf:settings", namespace="CELERY")
mend_connections(app)
app.conf.task_queues = [Queue(name, routing_key=name) for name in QUEUES]
app.conf.task_default_queue = JOBS
app.conf.task_routes = ROUTES
app.autodiscover_tasks(["harbor_refresh.tasks"], related_name="celery_tasks")


signals.celeryd_init.connect(exit_on_bad_settings)
signals.beat_init.connect(exit_on_bad_settings)


@signals.setup_logging.connect
def log_like_django(**_: Any) -> None:
    """Make workers and beat log the same lines to the same place as web."""
    from django.conf import settings

    dictConfig(settings.LOGGING)
