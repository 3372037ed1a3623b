"""Where our own tables are if the service is attached to a running Harbor."""

from typing import Any

from django.core.management.base import CommandError
from django.db import DEFAULT_DB_ALIAS, connections

from harbor_refresh.executions.attached.attachment import SCHEMA, SEARCH_PATH, is_attached


def make_schema(using: str = DEFAULT_DB_ALIAS, **_: Any) -> None:
    """Make our schema before the first migration. Refuse to migrate where the tables would not be kept apart: the
    database must be a Harbor's, without our tables beside its own, and tables must be made in our schema.
    PgBouncer takes no options of a connection; then the role must have the search path."""
    if not is_attached():
        return
    with connections[using].cursor() as cursor:
        cursor.execute(
            "SELECT to_regclass('public.execution') IS NOT NULL AND to_regclass('public.task') IS NOT NULL, "
            "to_regclass('public.execution_status_change') IS NOT NULL, to_regnamespace(%s) IS NULL",
            [SCHEMA],
        )
        is_harbors, is_ours, is_new = cursor.fetchone()
        if not is_harbors:
            raise CommandError(
                "REFRESH_ATTACH is harbor, and this database has no tables execution and task in its schema "
                "public. Name the database of Harbor in DATABASE_URL."
            )
        if is_ours:
            raise CommandError(
                "REFRESH_ATTACH is harbor, and the schema public of this database holds tables of Harbor Refresh, "
                "so it was migrated without REFRESH_ATTACH. Name the database of Harbor in DATABASE_URL."
            )
        if is_new:
            cursor.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
        cursor.execute("SELECT current_schemas(FALSE), quote_ident(current_user)")
        schemas, role = cursor.fetchone()
        if schemas != SEARCH_PATH.split(","):
            raise CommandError(
                f"Tables would be made in {schemas[0] if schemas else 'no schema'} and not in {SCHEMA}. Type: "
                f"ALTER ROLE {role} SET search_path = {SEARCH_PATH}; "
                "Then reconnect the pooler, and repeat this command."
            )
