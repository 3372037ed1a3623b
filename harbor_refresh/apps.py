from django.apps import AppConfig


class HarborRefreshConfig(AppConfig):
    name = "harbor_refresh"

    def ready(self) -> None:
        """Import the Celery app, so that every process with Django sends its messages through it."""
        from harbor_refresh import celery  # noqa: F401
