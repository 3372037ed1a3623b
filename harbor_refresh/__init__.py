"""The service: Celery app, URLs, WSGI. No domain lives here."""
