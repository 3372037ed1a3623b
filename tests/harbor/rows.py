"""Rows of Harbor's tables, as its core writes them. Times are UTC without a zone, in whole seconds."""

from datetime import datetime
from typing import Any

from django.db import connection

#: What beego writes for a zero time in raw SQL.
NEVER = datetime(1, 1, 1)
T1, T2, T3 = datetime(2026, 8, 21, 6, 0, 1), datetime(2026, 8, 21, 6, 0, 2), datetime(2026, 8, 21, 6, 0, 3)


def execution(status: str | None = "Running", **columns: Any) -> int:
    """Add an execution. Columns that are not named are as Harbor's core leaves them at the creation."""
    given = {
        "vendor_type": "REPLICATION",
        "vendor_id": 1,
        "status": status,
        "status_message": "",
        "trigger": "MANUAL",
        "extra_attrs": "{}",
        "start_time": T1,
        "update_time": T1,
        "revision": 0,
        **columns,
    }
    return _insert("execution", given)


def task(of: int, status: str, code: int | None = None, **columns: Any) -> int:
    """Add a task. The code is that of the word, unless another is given."""
    codes = {"Pending": 0, "Scheduled": 1, "Running": 2}
    given = {
        "execution_id": of,
        "job_id": f"job-{of}",
        "status": status,
        "status_code": codes.get(status, 3) if code is None else code,
        "status_revision": 1_787_292_000,
        "status_message": "",
        "run_count": 1,
        "extra_attrs": "{}",
        "creation_time": T1,
        "start_time": T1,
        "update_time": T2,
        "end_time": NEVER if status in codes else T2,
        "vendor_type": "REPLICATION",
        **columns,
    }
    return _insert("task", given)


def _insert(table: str, given: dict[str, Any]) -> int:
    names, places = ", ".join(given), ", ".join(f"%({name})s" for name in given)
    with connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO {table} ({names}) VALUES ({places}) RETURNING id", given)
        return int(cursor.fetchone()[0])


def stored(of: int, *columns: str) -> tuple[Any, ...]:
    """The columns of an execution as Harbor reads them: times as text, without a conversion of ours."""
    return asked(f"SELECT {', '.join(f'{name}::text' for name in columns)} FROM execution WHERE id = {of}")[0]


def history(of: int) -> list[tuple[Any, ...]]:
    return asked(
        "SELECT revision, from_status, to_status FROM execution_status_change"
        f" WHERE execution_id = {of} ORDER BY revision"
    )


def asked(statement: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall() if cursor.description else []
