from django.apps import AppConfig

from harbor_refresh.executions.conf.declarations import is_service


class HarborRefreshConfig(AppConfig):
    """A project installs it for its commands. Only in our own service it makes the Celery app, the roles, and the
    pages that replace Django's."""

    name = "harbor_refresh"

    def ready(self) -> None:
        """Import the Celery app, so that every process with Django sends its messages through it, and have
        `migrate` make the ready roles."""
        if not is_service():
            return
        from harbor_refresh import celery  # noqa: F401
        from harbor_refresh.management import roles

        roles.connect()
