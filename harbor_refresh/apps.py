from django.apps import AppConfig


class HarborRefreshConfig(AppConfig):
    name = "harbor_refresh"

    def ready(self) -> None:
        """Import the Celery app, so that every process with Django sends its messages through it, and have
        `migrate` make the ready roles."""
        from harbor_refresh import celery, roles, tracing  # noqa: F401
        from harbor_refresh.logs import context

        context.connect()
        roles.connect()
        tracing.connect()
