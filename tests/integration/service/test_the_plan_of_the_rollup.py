"""The rule of the rollup is a function, and each statement that asks it is planned as if the rule stood in it."""

import pytest
from django.db import connection

from harbor_refresh.executions.sql import text

ROWS = """
INSERT INTO execution (vendor_type, vendor_id, status, status_message, trigger, extra_attrs, revision)
SELECT 'A', 0, 'Running', '', 'MANUAL', '{}', 0 FROM generate_series(1, 3000);
INSERT INTO task (execution_id, vendor_type, job_id, status, status_code, status_revision, status_message,
    run_count, extra_attrs, end_time)
SELECT id, 'A', '', 'Success', 3, 1, '', 1, '{}', now() FROM execution, generate_series(1, 10);
"""


@pytest.mark.usefixtures("database")
def test_the_index_alone_answers_the_rollup_and_no_function_is_called() -> None:
    ids = list(range(100, 200))
    given = {"ids": ids, "count": 100, "waited": 0.0, "id": 7, "quarantined": False, "at_most": None}
    given |= {"given_up": None}
    with connection.cursor() as cursor:
        cursor.execute(ROWS)
        cursor.execute("VACUUM ANALYZE execution, task")
        for package, name in (
            ("harbor_refresh.executions", "refresh_executions"),
            ("harbor_refresh.executions", "compare_with_tasks"),
            ("harbor_refresh.tasks", "find_drift"),
            ("examples.simulation", "check_rollup"),
        ):
            cursor.execute(f"EXPLAIN {text(package, name)}", {**given, "dangling": None})
            plan = "\n".join(line for (line,) in cursor.fetchall())
            assert "Index Only Scan using task_rollup" in plan, f"{name}: {plan}"
            assert "execution_rollup" not in plan, f"{name}: {plan}"
