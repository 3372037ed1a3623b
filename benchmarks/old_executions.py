"""The executions of the experiment with the sweep: all have ended, and so have their tasks."""

from django.db import connection
from django.db.models import Max

from harbor_refresh.executions.models import Execution

VENDOR = "IMAGE_SCAN"
#: As many vendor ids as artifacts that were scanned; of each, retention keeps one execution.
VENDOR_IDS = 1_000
CHUNK = 20_000

EXECUTIONS = """
INSERT INTO execution (vendor_type, vendor_id, status, status_message, trigger, extra_attrs, end_time, revision)
SELECT %(vendor)s, n %% %(ids)s, 'Success', '', 'SCHEDULE', '{}', now(), 1
FROM generate_series(%(first)s, %(last)s) AS n
"""
HISTORY = """
INSERT INTO execution_status_change (execution_id, revision, from_status, to_status, at, told)
SELECT id, 1, 'Running', 'Success', now(), TRUE FROM execution WHERE id > %(after)s ORDER BY id
"""
TASKS = """
INSERT INTO task (
    vendor_type, execution_id, job_id, status, status_code, status_revision, status_message,
    run_count, extra_attrs, start_time, end_time
)
SELECT %(vendor)s, e.id, lpad(to_hex(e.id * 1000 + t), 24, '0'), 'Success', 3, 1, '', 1, '{}', now(), now()
FROM (SELECT id FROM execution WHERE id > %(after)s ORDER BY id) AS e, generate_series(1, %(tasks)s) AS t
ORDER BY e.id, t
"""


def fill(executions: int, tasks: int) -> None:
    with connection.cursor() as cursor:
        for first in range(0, executions, CHUNK):
            after = Execution.objects.aggregate(last=Max("id"))["last"] or 0
            values = {"vendor": VENDOR, "ids": VENDOR_IDS, "after": after, "tasks": tasks, "first": first}
            cursor.execute(EXECUTIONS, {**values, "last": min(first + CHUNK, executions) - 1})
            cursor.execute(HISTORY, values)
            cursor.execute(TASKS, values)
        cursor.execute("VACUUM ANALYZE execution, task, execution_status_change")


def left() -> int:
    return Execution.objects.filter(vendor_type=VENDOR).count()


NEXT_TO_GO = """
WITH next AS (
    SELECT vendor_id FROM execution WHERE vendor_type = %(vendor)s
    GROUP BY vendor_id HAVING count(*) > 1 ORDER BY vendor_id LIMIT 1
)
SELECT t.id
FROM execution e
JOIN next n ON n.vendor_id = e.vendor_id
JOIN task t ON t.execution_id = e.id
WHERE e.vendor_type = %(vendor)s
ORDER BY random()
LIMIT 1
"""


def next_to_go() -> int:
    """A task that the sweep is about to delete, or deletes at this moment; 0 if there is none."""
    with connection.cursor() as cursor:
        cursor.execute(NEXT_TO_GO, {"vendor": VENDOR})
        row = cursor.fetchone()
        return int(row[0]) if row else 0
