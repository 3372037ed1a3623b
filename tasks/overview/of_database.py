"""What PostgreSQL knows of the present, by one statement, and one for beat's schedule."""

import json
from typing import Any

from django.db import DatabaseError, InterfaceError, connection, transaction

from harbor_refresh.executions.database import absence_translated, first_line, sqlstate
from harbor_refresh.executions.errors import DatabaseAway, NotMigrated
from harbor_refresh.tasks.database import run
from harbor_refresh.tasks.schedule import ROWS, has_rows

#: How long the statement may take.
PATIENCE_MS = 2_000
#: A table or a column does not exist.
MISSING = ("42P01", "42703")


def read(most: int) -> dict[str, Any]:
    """Return the values of State that PostgreSQL knows; counts stop at `most`. Raises DatabaseAway, too, if the
    database takes too long, and NotMigrated if a table or a column is missing."""
    try:
        with absence_translated(), transaction.atomic():
            _be_brief()
            found = run("look", most=most)[0]
            schedule = _schedule()
    except (DatabaseError, InterfaceError) as exc:
        kind = NotMigrated if sqlstate(exc) in MISSING else DatabaseAway
        raise kind(f"PostgreSQL: {first_line(exc)}") from exc
    quarantined, dead_letters, open_actions, last_reconcile, drifted, paused = found
    return {
        "quarantined": quarantined,
        "dead_letters": dead_letters,
        "open_actions": open_actions,
        "last_reconcile": last_reconcile,
        "drifted": drifted,
        "schedule": schedule,
        "paused": tuple(_read(paused)),
    }


def _schedule() -> Any:
    """The rows of beat's schedule; None in a project without django-celery-beat."""
    if not has_rows():
        return None
    ((rows,),) = run("look_at_schedule", tasks=[row.task for row in ROWS])
    return _read(rows)


def _read(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


def _be_brief() -> None:
    """Limit the time of the statements in this transaction. Inside a transaction of the caller the limit would
    outlive the look, so there it is left out."""
    if len(connection.savepoint_ids) == 0:
        with connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL statement_timeout = {PATIENCE_MS}")
