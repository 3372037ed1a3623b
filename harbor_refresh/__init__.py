"""The wiring: Celery app, URLs, WSGI. No domain lives here."""

from harbor_refresh.celery import app as celery_app

__all__ = ["celery_app"]
