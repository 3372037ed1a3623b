"""The service: Celery app, URLs, WSGI. It holds no domain logic."""
