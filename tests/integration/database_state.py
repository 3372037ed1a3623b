"""What PostgreSQL holds: whole tables as values, and the locks that backends wait for."""

from typing import Any

from django.db import connection, models


def rows(model: type[models.Model], **only: Any) -> dict[Any, dict[str, Any]]:
    """A whole table by primary key."""
    return {row["pk"]: row for row in model._default_manager.filter(**only).values("pk", *_columns(model))}


def _columns(model: type[models.Model]) -> list[str]:
    return [field.attname for field in model._meta.concrete_fields]


def waiting_for_locks() -> int:
    """How many backends of this database wait for a lock."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return int(cursor.fetchone()[0])


def deadlocks_so_far() -> int:
    """Of this database, as told by connections that are closed."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
        return int(cursor.fetchone()[0])
