"""The executions of most experiments: all tasks have ended, and the execution is not refreshed yet.

The server generates them with triggers switched off, because checking four million foreign keys that are right
by construction would only take time.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from django.db import ProgrammingError, connection, transaction
from psycopg.errors import InsufficientPrivilege

from examples.simulation import invariants
from harbor_refresh.tasks.queue.members import member
from harbor_refresh.tasks.strategies import Strategy

CHUNK = 20_000
VENDORS = (
    "IMAGE_SCAN",
    "REPLICATION",
    "RETENTION",
    "WEBHOOK",
    "P2P_PREHEAT",
    "SCAN_ALL",
    "GARBAGE_COLLECTION",
    "SLACK",
)

Progress = Callable[[int], None]

EXECUTIONS = """
INSERT INTO execution (
    id, vendor_type, vendor_id, status, status_message, trigger, extra_attrs, revision
)
SELECT n, (%(vendors)s::text[])[1 + n %% %(kinds)s], n %% 1000, 'Running', '', 'MANUAL', '{}', 0
FROM generate_series(%(first)s, %(last)s) AS n
"""

# About one task in a hundred failed and one in a hundred was stopped, in no particular order.
TASKS = """
INSERT INTO task (
    vendor_type, execution_id, job_id, status, status_code, status_revision, status_message,
    run_count, extra_attrs, start_time, end_time
)
SELECT
    (%(vendors)s::text[])[1 + n %% %(kinds)s], n, lpad(to_hex(n::bigint * %(tasks)s + t), 24, '0'),
    CASE ((n %% 9973) * 7919 + t * 104729) %% 97
        WHEN 13 THEN 'Error' WHEN 29 THEN 'Stopped' ELSE 'Success'
    END,
    3, 0, '', 0, '{}', now() - interval '1 minute', now() - make_interval(secs => (n + t) %% 60)
FROM generate_series(%(first)s, %(last)s) AS n, generate_series(1, %(tasks)s) AS t
"""


@dataclass(frozen=True)
class Size:
    executions: int
    tasks: int


def fill(size: Size, progress: Progress, executions: str = EXECUTIONS, tasks: str = TASKS) -> None:
    """Make the rows, and vacuum the tables as autovacuum would. `executions` inserts the executions of a chunk,
    and `tasks` their tasks."""
    common: dict[str, Any] = {"vendors": list(VENDORS), "kinds": len(VENDORS), "tasks": size.tasks}
    common["all"] = size.executions
    with connection.cursor() as cursor:
        _if_allowed("SET session_replication_role = replica")
        for first in range(1, size.executions + 1, CHUNK):
            last = min(first + CHUNK - 1, size.executions)
            values = common | {"first": first, "last": last}
            cursor.execute(executions, values)
            cursor.execute(tasks, values)
            progress(last)
        _if_allowed("SET session_replication_role = origin")
        cursor.execute("SELECT setval(pg_get_serial_sequence('execution', 'id'), %s)", [size.executions])
    settle()


def settle() -> None:
    """Leave no work for autovacuum or for the next checkpoint."""
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE execution, task, execution_status_change")
    _if_allowed("CHECKPOINT")


def forget_refreshes(last: int) -> None:
    """Make the first `last` executions stale again and delete their history, so that each run has the same tables.

    The table is rewritten. Otherwise the first run would have full pages, and later runs the free space that
    earlier ones left.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE execution SET status = 'Running', end_time = NULL, revision = 0"
            " WHERE id <= %s AND (status <> 'Running' OR revision <> 0)",
            [last],
        )
        cursor.execute("DELETE FROM execution_quarantine")
        if last >= _greatest_id():
            cursor.execute("TRUNCATE execution_status_change")
        else:
            cursor.execute("DELETE FROM execution_status_change WHERE execution_id <= %s", [last])
        cursor.execute("VACUUM (FULL) execution")
    settle()


def members(first: int, last: int) -> list[str]:
    return [member(n, VENDORS[n % len(VENDORS)]) for n in range(first, last + 1)]


def pages(size: int) -> Iterator[list[str]]:
    """The members of the first `size` executions, in pages of CHUNK."""
    for first in range(1, size + 1, CHUNK):
        yield members(first, min(first + CHUNK - 1, size))


def mark_all(strategy: Strategy, size: int, progress: Progress) -> None:
    """Mark the first `size` executions as this strategy does, without a wake-up."""
    done = 0
    for page in pages(size):
        strategy.mark(page)
        done += len(page)
        progress(done)


def count_true(last: int) -> int:
    """Count those of the first `last` executions whose status is what their tasks say. All tasks have ended, so a
    running execution is not counted. The statement is large enough for PostgreSQL to compile it, which would take
    longer than to run it."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL jit = off")
        cursor.execute(
            "SELECT count(*) FROM execution e CROSS JOIN LATERAL execution_rollup(ARRAY[e.id]) r"
            " WHERE e.id <= %s AND (e.status, e.end_time) IS NOT DISTINCT FROM (r.status, r.end_time)",
            [last],
        )
        return int(cursor.fetchone()[0])


def count_begun(last: int) -> int:
    """Count those of the first `last` executions that are not Running: cheaper than `count_true`, for polling."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM execution WHERE id <= %s AND status <> 'Running'", [last])
        return int(cursor.fetchone()[0])


def wrong(last: int) -> list[int]:
    """Return those of the first `last` executions that violate K1."""
    return [one.execution_id for one in invariants.wrong() if one.execution_id and one.execution_id <= last]


def _greatest_id() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT coalesce(max(id), 0) FROM execution")
        return int(cursor.fetchone()[0])


def _if_allowed(statement: str) -> None:
    """Execute a statement that only a superuser may execute, and that only makes the preparation faster."""
    with connection.cursor() as cursor:
        try:
            cursor.execute(statement)
        except ProgrammingError as exc:
            if not isinstance(exc.__cause__, InsufficientPrivilege):
                raise
