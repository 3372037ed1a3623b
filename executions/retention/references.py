"""References: rows of the project, or of another program, that name an execution. PostgreSQL refuses to delete it
then, whatever `on_delete` the ForeignKey has: only the deletes of Django itself carry that out."""

from collections.abc import Sequence

from django.apps import apps
from django.db import connection

from harbor_refresh.executions.database import run
from harbor_refresh.executions.models import Execution


def referenced(execution_ids: Sequence[int]) -> dict[int, str]:
    """Return those of the executions that are named so, and the table and column that name each."""
    found: dict[int, str] = {}
    ours = [model._meta.db_table for model in apps.get_app_config(Execution._meta.app_label).get_models()]
    for column, query in run("find_references", ours=ours) if execution_ids else ():
        with connection.cursor() as cursor:
            cursor.execute(query, [list(execution_ids)])
            found |= {pk: column for (pk,) in cursor.fetchall()}
    return dict(sorted(found.items()))
