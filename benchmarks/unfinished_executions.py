"""The executions of the experiments that report: each status is true, and some tasks of each are not final."""

from django.db import connection
from django.db.models import Max

from harbor_refresh.executions.models import Execution, Task

EXECUTIONS = """
INSERT INTO execution (vendor_type, vendor_id, status, status_message, trigger, extra_attrs, revision)
SELECT 'REPLICATION', n %% 1000, 'Running', '', 'MANUAL', '{}', 0 FROM generate_series(1, %(executions)s) AS n
"""
TASKS = """
INSERT INTO task (
    vendor_type, execution_id, job_id, status, status_code, status_revision, status_message,
    run_count, extra_attrs, start_time, end_time
)
SELECT
    'REPLICATION', e.id, '', CASE WHEN t <= %(done)s THEN 'Success' ELSE 'Pending' END,
    CASE WHEN t <= %(done)s THEN 3 ELSE 0 END, 0, '', 0, '{}',
    CASE WHEN t <= %(done)s THEN now() END, CASE WHEN t <= %(done)s THEN now() END
FROM (SELECT id FROM execution WHERE id > %(after)s ORDER BY id) AS e, generate_series(1, %(tasks)s) AS t
ORDER BY e.id, t
"""


def prepare(executions: int, tasks: int, *, done: int = 0) -> list[tuple[int, int]]:
    """Create executions of so many tasks, of which the first `done` have succeeded, and analyse the tables.

    Return (execution id, task id) of each task that is not final, in order.
    """
    after = Execution.objects.aggregate(last=Max("id"))["last"] or 0
    with connection.cursor() as cursor:
        cursor.execute(EXECUTIONS, {"executions": executions})
        cursor.execute(TASKS, {"after": after, "tasks": tasks, "done": done})
        cursor.execute("VACUUM ANALYZE execution, task")
    left = Task.objects.filter(execution_id__gt=after, end_time__isnull=True).order_by("id")
    return list(left.values_list("execution_id", "id"))
