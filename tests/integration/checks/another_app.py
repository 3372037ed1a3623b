"""A Celery app that has nothing to do with this project, on the same broker."""

import os

from celery import Celery

app = Celery("another_app", broker=os.environ["REDIS_URL"])
