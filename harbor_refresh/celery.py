"""The Celery application: made from Django's settings, fed with the actors of `tasks`."""

import os

from celery import Celery
from kombu import Queue

from tasks.queues import TICKS, WORK

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "settings.dev")

app = Celery("harbor_refresh")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.task_queues = [Queue(TICKS), Queue(WORK)]
app.autodiscover_tasks(["tasks"], related_name="actors")
