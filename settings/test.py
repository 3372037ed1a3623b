"""For the tests: the base, a cheap password hash, and a key that protects nothing."""

from settings.base import *  # noqa: F403

SECRET_KEY = "for tests only: protects nothing"  # noqa: S105
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
CELERY_WORKER_SEND_TASK_EVENTS = False
WHITENOISE_AUTOREFRESH = True
WHITENOISE_USE_FINDERS = True
