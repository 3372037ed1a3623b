"""What a project needs before anything of ours works: our apps, and PostgreSQL as its default database."""

from typing import Any

from django.apps import apps
from django.core.checks import CheckMessage, Error
from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS

from harbor_refresh.executions.declarations import is_service


def require_installed(package: str) -> None:
    """Raise ImproperlyConfigured if a project imports our models without their app. Django's own error names a
    model and an `app_label`, and not what to do."""
    if apps.get_containing_app_config(package) is None:
        raise ImproperlyConfigured(
            "Harbor Refresh is not installed in this project, or only in part. Add "
            '"harbor_refresh.executions" and "harbor_refresh.tasks" to INSTALLED_APPS.'
        )


def other_than_postgresql(connection: Any) -> CheckMessage | None:
    """Return what is wrong and what to do if this is the default database and not PostgreSQL. A backend of
    PostGIS, a pool or a meter has another name, and the same vendor."""
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
