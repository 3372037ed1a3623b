from typing import Any

from django.apps import AppConfig
from django.core.checks import CheckMessage, Error
from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS, router
from django.db.backends.signals import connection_created
from django.db.models.signals import pre_migrate

from harbor_refresh.executions.attached.attachment import is_attached
from harbor_refresh.executions.conf.declarations import is_service


class ExecutionsConfig(AppConfig):
    name = "harbor_refresh.executions"
    label = "harbor_executions"
    verbose_name = "Harbor Refresh"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from harbor_refresh.executions.attached.own_schema import make_schema
        from harbor_refresh.executions.database import Router

        router.routers.insert(0, Router(self.label))
        pre_migrate.connect(make_schema, sender=self)
        connection_created.connect(register_types)


def other_than_postgresql(connection: Any) -> CheckMessage | None:
    """Return what is wrong if this is the default database and not PostgreSQL. A backend of PostGIS, a pool or a
    meter has another name, and the same vendor."""
    if connection.alias != DEFAULT_DB_ALIAS or connection.vendor == "postgresql":
        return None
    todo = (
        "Set DATABASE_URL to postgresql://user:password@host:port/name."
        if is_service()
        else 'Write into the settings: DATABASES = {"default": {"ENGINE": "django.db.backends.postgresql", '
        '"NAME": "the name of your database"}}.'
    )
    engine = connection.settings_dict["ENGINE"]
    return Error(f"The database is {engine}; Harbor Refresh needs PostgreSQL.", hint=todo, id="harbor_tasks.E001")


def register_types(connection: Any, **_: Any) -> None:
    """Receive that Django has made a connection. `migrate`, `test` and `shell` make no checks, so a default
    database that is not PostgreSQL is refused here, too. psycopg 3 is imported only if the service is attached: a
    project may run where it cannot be loaded, which a check tells (tasks/checks/settings.py)."""
    if found := other_than_postgresql(connection):
        connection.close()
        raise ImproperlyConfigured(f"{found.msg} {found.hint}")
    if is_attached():
        from harbor_refresh.executions.attached import harbors_types

        harbors_types.register(connection)
