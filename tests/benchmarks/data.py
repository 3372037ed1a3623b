"""The benchmark's rows: executions whose tasks have ended and that nobody has refreshed.

Made by the server itself, with no regard for triggers (a foreign key that is right by construction
is not looked up four million times). A share of them may be true already, as most are in an
ordinary cycle.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db import connection

from executions.queue import execution_queue, member

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

# What is true already was refreshed once, like everything else will have been in the end.
TRUE_ALREADY = """
WITH refreshed AS (
    UPDATE execution e
    SET status = r.status, end_time = r.end_time, revision = 1
    FROM execution_rollup r
    WHERE e.id = r.execution_id AND e.id > %(stale)s AND e.id BETWEEN %(first)s AND %(last)s
        AND r.execution_id BETWEEN %(first)s AND %(last)s
    RETURNING e.id, e.status
)
INSERT INTO execution_status_change (execution_id, revision, from_status, to_status, at)
SELECT id, 1, 'Running', status, now() FROM refreshed
"""


@dataclass(frozen=True)
class Size:
    executions: int
    tasks: int
    changed: float

    @property
    def stale(self) -> int:
        """How many are not true yet: those with the smallest ids."""
        return round(self.executions * self.changed)


def fill(size: Size, progress: Progress) -> None:
    """Make the rows, and leave the tables as autovacuum would have left them."""
    common: dict[str, Any] = {"vendors": list(VENDORS), "kinds": len(VENDORS), "tasks": size.tasks}
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        for first in range(1, size.executions + 1, CHUNK):
            last = min(first + CHUNK - 1, size.executions)
            values = common | {"first": first, "last": last, "stale": size.stale}
            cursor.execute(EXECUTIONS, values)
            cursor.execute(TASKS, values)
            if last > size.stale:
                cursor.execute(TRUE_ALREADY, values)
            progress(last)
        cursor.execute("SET session_replication_role = origin")
        cursor.execute("SELECT setval(pg_get_serial_sequence('execution', 'id'), %s)", [size.executions])
    settle()


def settle() -> None:
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE execution, task, execution_status_change")
        cursor.execute("CHECKPOINT")


def forget_refreshes(last: int) -> None:
    """Make the first `last` executions stale again, after the bare loop has been over them."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE execution SET status = 'Running', end_time = NULL, revision = 0 WHERE id <= %s",
            [last],
        )
    settle()


def mark_all(size: Size, progress: Progress) -> None:
    """Put every execution on the queue, without waking anybody."""
    queue = execution_queue()
    for first in range(1, size.executions + 1, CHUNK):
        last = min(first + CHUNK - 1, size.executions)
        queue.add(member(n, VENDORS[n % len(VENDORS)]) for n in range(first, last + 1))
        progress(last)
