"""Executions that have ended, with their tasks and their history, made by two statements."""

from datetime import timedelta

from django.db import connection

EXECUTIONS = """
INSERT INTO execution
    (vendor_type, vendor_id, status, status_message, trigger, extra_attrs, start_time, end_time, revision)
SELECT
    %(vendor)s, %(vendor_id)s, %(status)s, '', 'MANUAL', '{}', now() - %(age)s::interval,
    CASE WHEN %(status)s <> 'Running' THEN now() - %(age)s::interval END, 1
FROM generate_series(1, %(count)s)
RETURNING id
"""
TASKS = """
WITH history AS (
    INSERT INTO execution_status_change (execution_id, revision, from_status, to_status, at, told)
    SELECT id, 1, 'Pending', %(status)s, now() - %(age)s::interval, TRUE FROM unnest(%(ids)s::bigint[]) AS e (id)
)
INSERT INTO task (
    vendor_type, execution_id, job_id, status, status_code, status_revision, status_message,
    run_count, extra_attrs, creation_time, update_time, end_time
)
SELECT
    %(vendor)s, e.id, '', t.status, CASE t.status WHEN 'Running' THEN 2 ELSE 3 END, 0, '', 0, '{}',
    now() - %(age)s::interval, now() - %(age)s::interval,
    CASE WHEN t.status <> 'Running' THEN now() - %(age)s::interval END
FROM unnest(%(ids)s::bigint[]) AS e (id), unnest(%(tasks)s::text[]) AS t (status)
ORDER BY e.id
"""


def ended(
    count: int = 1,
    *,
    vendor: str = "IMAGE_SCAN",
    vendor_id: int = 1,
    status: str = "Success",
    tasks: tuple[str, ...] = ("Success",),
    age: timedelta = timedelta(0),
) -> list[int]:
    """Create executions of that status, with tasks of these statuses, which moved so long ago; return the ids."""
    values = {"vendor": vendor, "vendor_id": vendor_id, "status": status, "age": age}
    with connection.cursor() as cursor:
        cursor.execute(EXECUTIONS, {**values, "count": count})
        ids = sorted(row[0] for row in cursor.fetchall())
        cursor.execute(TASKS, {**values, "ids": ids, "tasks": list(tasks)})
    return ids
