"""PostgreSQL compiles a statement whose estimated cost passes `jit_above_cost`, which takes longer than to run it.

No statement of ours costs so much on small tables. A planner setting that forbids a scan would make it so: until
PostgreSQL 17 it adds 10,000,000,000 to the cost of a plan that must scan all the same.
"""

import itertools
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection

from tests.integration.statements import planned, statement

ROWS = """
INSERT INTO execution (vendor_type, vendor_id, status, status_message, trigger, extra_attrs, revision)
SELECT 'A', 0, 'Running', '', 'MANUAL', jsonb_build_object('n', n), 0 FROM generate_series(1, 1000) n;
INSERT INTO task (execution_id, vendor_type, job_id, status, status_code, status_revision, status_message,
    run_count, extra_attrs)
SELECT id, 'A', 'job-' || id, 'Running', 2, 1, '', 1, '{}' FROM execution;
INSERT INTO execution_job
    (task_id, name, queue, args, kwargs, options, max_attempts, runs_before, holds_key, state, run,
    revision, priority, retries, resent, node, process)
SELECT id, 'a.job', 'a', '[]', '{}', '{}', 3, 0, FALSE, 'running', 1, 0, 0, 0, 0, 1, 1 FROM task;
"""
NEEDS = """
INSERT INTO execution_need (job_id, needed_id, place, even_if_failed, is_met)
SELECT id, id - 1, 0, FALSE, FALSE FROM task WHERE id > 1;
UPDATE execution_job SET waits_for = 1 WHERE task_id > 1
"""
#: What calls each function of ours. Each of them keeps its plans, so a plan is made for values that are not known.
CALLS = {
    "execution_admit": "SELECT execution_admit(NULL), execution_admit(ARRAY[7])",
    "execution_turn": "SELECT execution_turn('a', 0, 'b', NULL, 'x'), execution_turn('a', 0, 'b', '', 'x')",
    "execution_job_joins_line": (
        "UPDATE execution_job SET state = 'waiting', node = NULL, process = NULL WHERE task_id = 8"
    ),
    "execution_begin_run": "SELECT * FROM execution_begin_run(7, 'job-7', 0, 1, 1)",
    "execution_begin_job": "SELECT * FROM execution_begin_job(7, 'job-7', 0, NULL, 1, 1)",
    "execution_end_jobs": "UPDATE task SET status = 'Success', status_code = 3, end_time = now() WHERE id = 7",
    "execution_note_failure": "UPDATE task SET status = 'Error', status_code = 3, end_time = now() WHERE id = 9",
    "report_task_by_job": "SELECT * FROM report_task_by_job('job-7', 7, 'Running', 2, 9, NULL)",
    "add_to_execution_counters": "SELECT add_to_execution_counters(ARRAY['a'], ARRAY['b'], ARRAY[1])",
    "count_execution_refresh": "SELECT count_execution_refresh(1, 1, 0.1, ARRAY[1.0])",
    "execution_rollup": "SELECT * FROM execution_rollup(ARRAY[1, 2, 3])",
}
COST = re.compile(r"\.\.([\d.]+) rows=")
PARAMETER = re.compile(r"%\(\w+\)s")


@pytest.fixture
def cursor(database: str) -> Iterator[Any]:
    with connection.cursor() as cursor:
        cursor.execute(ROWS)
        cursor.execute(NEEDS)
        cursor.execute("VACUUM ANALYZE execution, task, execution_job, execution_need")
        cursor.execute("SET plan_cache_mode = force_generic_plan")
        yield cursor


def limit(cursor: Any) -> float:
    cursor.execute("SELECT boot_val::float FROM pg_settings WHERE name = 'jit_above_cost'")
    return float(cursor.fetchone()[0])


def trouble(plan: str, most: float) -> str:
    """Return the plan if it is too expensive. Since PostgreSQL 18 a forbidden scan is told and costs nothing."""
    costs = [float(cost) for cost in COST.findall(plan)]
    assert costs, plan
    return plan if max(costs) > most or "Disabled: true" in plan else ""


def prepared(words: str) -> tuple[str, int]:
    """The statement with PostgreSQL's own parameters, and how many it has."""
    numbers = itertools.count(1)
    text = PARAMETER.sub(lambda _: f"${next(numbers)}", words)
    return text.replace("%%", "%"), next(numbers) - 1


def test_no_statement_is_compiled_on_small_tables(cursor: Any) -> None:
    most = limit(cursor)
    expensive, statements = {}, planned()
    for name, words in statements.items():
        text, count = prepared(words)
        cursor.execute(f"PREPARE planned AS {text}")
        given = f"({', '.join(['NULL'] * count)})" if count else ""
        cursor.execute(f"EXPLAIN EXECUTE planned{given}")
        if found := trouble("\n".join(line for (line,) in cursor.fetchall()), most):
            expensive[name] = found
        cursor.execute("DEALLOCATE planned")
    assert expensive == {}
    assert len(statements) > 50


def without_analyzed_needs(cursor: Any) -> None:
    cursor.execute("ANALYZE task")
    cursor.execute("TRUNCATE execution_need")
    cursor.execute("DELETE FROM pg_statistic WHERE starelid = 'execution_need'::regclass")
    cursor.execute("UPDATE pg_class SET reltuples = -1 WHERE oid = 'execution_need'::regclass")
    cursor.execute(NEEDS)


def test_a_retry_is_not_compiled_before_the_first_needs_are_analyzed(cursor: Any) -> None:
    cursor.execute("UPDATE task SET status = 'Error', status_code = 3, end_time = now()")
    without_analyzed_needs(cursor)
    given = {"execution_ids": [1, 2], "status": "Error", "first": None, "among": None}
    words = statement("harbor_refresh.tasks.jobs", "find_jobs_to_run_again")
    cursor.execute(f"EXPLAIN {words}", given)
    assert trouble("\n".join(line for (line,) in cursor.fetchall()), limit(cursor)) == ""


@pytest.mark.parametrize("is_locked", [False, True])
def test_a_retry_of_a_long_line_reads_no_table_once_for_each_of_its_jobs(is_locked: bool, cursor: Any) -> None:
    cursor.execute("UPDATE task SET status = 'Stopped', status_code = 3, end_time = now()")
    cursor.execute("UPDATE task SET status = 'Error' WHERE id = 1")
    without_analyzed_needs(cursor)
    ids = list(range(1, 1001))
    given = {"execution_ids": ids, "status": "Error", "first": None, "among": ids if is_locked else None}
    words = statement("harbor_refresh.tasks.jobs", "find_jobs_to_run_again")
    cursor.execute(f"EXPLAIN ANALYZE {words}", given)
    plan = "\n".join(line for (line,) in cursor.fetchall())
    assert re.search(r"CTE Scan on wanted .*rows=1000[ .]", plan)
    assert re.findall(r".*(?:Seq Scan|ProjectSet).*loops=\d{2,}.*", plan) == []


@pytest.mark.slow
def test_the_progress_of_a_large_family_is_not_compiled(cursor: Any) -> None:
    cursor.execute("""
        INSERT INTO task (execution_id, vendor_type, job_id, status, status_code, status_revision, status_message,
            run_count, extra_attrs)
        SELECT 1 + n % 1000, 'A', '', 'Running', 2, 1, '', 1, '{}' FROM generate_series(1, 200000) n;
        INSERT INTO execution_link (child_id, parent_id, task_id, key)
        SELECT id, 1, id, '' FROM execution WHERE id > 1
    """)
    cursor.execute("VACUUM ANALYZE task, execution_link")
    given = {"execution_id": 1, "deep": True, "recent": "1 hour", "now": None}
    cursor.execute(f"EXPLAIN ANALYZE {statement('harbor_refresh.executions', 'progress')}", given)
    plan = "\n".join(line for (line,) in cursor.fetchall())
    assert re.search(r"rows=1000[ .]", plan)
    assert trouble(plan, limit(cursor)) == ""


@contextmanager
def plans(cursor: Any) -> Iterator[list[str]]:
    """The plans of all statements that run meanwhile, those inside of functions included."""
    told: list[str] = []
    cursor.execute("LOAD 'auto_explain'")
    for name, value in (("log_min_duration", "0"), ("log_nested_statements", "on"), ("log_level", "notice")):
        cursor.execute(f"SET auto_explain.{name} = {value}")

    def listen(notice: Any) -> None:
        told.append(notice.message_primary)

    cursor.connection.add_notice_handler(listen)
    yield told
    cursor.connection.remove_notice_handler(listen)
    cursor.execute("SET auto_explain.log_min_duration = -1")


def test_no_statement_of_a_function_is_compiled_on_small_tables(cursor: Any) -> None:
    most = limit(cursor)
    cursor.execute("SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND prolang <> 13")
    ours = {name for (name,) in cursor.fetchall() if "execution" in name or "task" in name}
    assert ours == set(CALLS)
    for name, call in CALLS.items():
        with plans(cursor) as told:
            cursor.execute(call)
        assert told, name
        assert [plan for plan in told if trouble(plan, most)] == []


def test_the_end_of_one_task_leaves_no_plan_that_takes_long_for_many(cursor: Any) -> None:
    """Its plans are kept for the session. A loop over the rows of the statement, or over an array for each row,
    would take the square of their number."""
    with plans(cursor) as told:
        cursor.execute(CALLS["execution_note_failure"])
    assert any("stopped AS" in plan for plan in told)
    assert [plan for plan in told if "Named Tuplestore" in plan and "Nested Loop" in plan] == []
    assert [plan for plan in told if re.search(r"Filter: .*= ANY \(\$", plan)] == []
