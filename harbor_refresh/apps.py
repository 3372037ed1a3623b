from django.apps import AppConfig
from django.core.exceptions import ImproperlyConfigured

from executions.declarations import is_service


class HarborRefreshConfig(AppConfig):
    name = "harbor_refresh"

    def __init__(self, *args: object) -> None:
        """Refuse any project but our own service, before a page is registered: the admin of this app takes the
        place of Django's screens of users, groups and beat's schedule, and it makes a Celery app."""
        if not is_service():
            raise ImproperlyConfigured(
                "INSTALLED_APPS: got the app of the service harbor_refresh, takes its two apps executions and "
                "tasks. Name those instead."
            )
        super().__init__(*args)  # type: ignore[arg-type]

    def ready(self) -> None:
        """Import the Celery app, so that every process with Django sends its messages through it, and have
        `migrate` make the ready roles."""
        from harbor_refresh import celery, roles, tracing  # noqa: F401
        from harbor_refresh.logs import context

        context.connect()
        roles.connect()
        tracing.connect()
