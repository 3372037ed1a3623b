"""Tasks are looked at, one or in pages."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from harbor_refresh.executions.lifecycle.creation import NewExecution, NewTask, add_tasks, create
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.models import Execution, Task
from harbor_refresh.executions.queries import listing
from tests.integration.concurrency import statement_held_open
from tests.integration.database_state import rows
from tests.integration.executions.api.api_client import Program, answered
from tests.integration.sample_executions import made


def test_one_task_is_shown_with_every_column(program: Program) -> None:
    execution, (task,) = made(1)
    report([Report(task, "Error", 5, "no space left")])
    shown = program.get(f"/tasks/{task}")
    times = {name: shown.pop(name) for name in ("creation_time", "start_time", "update_time", "end_time")}
    assert all(time.endswith("Z") for time in times.values())
    assert shown == {
        "id": task,
        "execution_id": execution.pk,
        "vendor_type": "TEST",
        "job_id": "",
        "status": "Error",
        "status_revision": 5,
        "status_message": "no space left",
        "run_count": 1,
        "extra_attrs": {},
    }
    assert program.get("/tasks/7777", 404)["detail"] == "there is no task 7777"


def test_the_tasks_of_an_execution_come_in_pages_the_oldest_first(program: Program) -> None:
    execution, tasks = made(5)
    made(1)
    report([Report(pk, "Error") for pk in tasks[::2]])
    path = f"/executions/{execution.pk}/tasks"
    first = program.get(f"{path}?limit=3")
    second = program.get(f"{path}?limit=3&cursor={first['next']}")
    assert [one["id"] for one in first["items"] + second["items"]] == tasks
    assert second["next"] is None
    assert [one["id"] for one in program.get(f"{path}?status=Error&status=Success")["items"]] == tasks[::2]


@pytest.mark.parametrize("compared", [1, 2, 3, 100])
def test_a_page_by_attribute_ends_after_so_many_comparisons_and_none_is_left_out(
    program: Program, compared: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "COMPARED", compared)
    execution = create(NewExecution("TEST", tasks=[NewTask("", {"n": number % 2}) for number in range(7)]))
    tasks = list(execution.tasks.order_by("pk").values_list("pk", flat=True))
    report([Report(pk, "Error") for pk in tasks[:5]])
    for query, among in (("", tasks), ("&status=Error", tasks[:5])):
        found, pages, cursor = [], 0, "0"
        while cursor is not None:
            page = program.get(f"/executions/{execution.pk}/tasks?attribute=n=1{query}&limit=2&cursor={cursor}")
            found += [one["id"] for one in page["items"]]
            pages, cursor = pages + 1, page["next"]
        assert found == among[1::2]
        assert pages >= len(among) // compared


OLDER, NEWER = 40_000, 2_000
ROWS = f"""
INSERT INTO task (execution_id, vendor_type, job_id, status, status_code, status_revision, status_message,
    run_count, extra_attrs, end_time)
SELECT CASE WHEN n <= {OLDER} THEN %(older)s ELSE %(newer)s END, 'TEST', '', 'Success', 3, 1, '', 1, '{{}}', now()
FROM generate_series(1, {OLDER + NEWER}) n;
INSERT INTO execution_job (task_id, name, queue, args, kwargs, options, max_attempts, runs_before, holds_key,
    state, run, revision, priority, retries, resent)
SELECT id, 'a.job', 'a', '[]', '{{}}', '{{}}', 1, 0, FALSE, 'ended', 1, 1, 0, 0, 0 FROM task;
INSERT INTO execution_job_end (job_id, revision, result) SELECT id, 1, '7' FROM task;
"""


@pytest.mark.parametrize("is_analyzed", [True, False])
@pytest.mark.parametrize("path", ["tasks", "tasks?status=Success", "jobs", "results"])
def test_a_page_of_a_new_execution_reads_no_older_task(program: Program, path: str, is_analyzed: bool) -> None:
    """The planner may walk the primary key over the tasks of all older executions to the first of this one."""
    (older, _), (newer, _) = made(0), made(0)
    mark = "&" if "?" in path else "?"
    with connection.cursor() as cursor:
        cursor.execute(ROWS, {"older": older.pk, "newer": newer.pk})
        if is_analyzed:
            cursor.execute("VACUUM ANALYZE task, execution_job, execution_job_end")
        pks = list(Task.objects.filter(execution=newer).order_by("pk").values_list("pk", flat=True)[:20])
        with CaptureQueriesContext(connection) as asked:
            first = program.get(f"/executions/{newer.pk}/{path}{mark}limit=10")
            second = program.get(f"/executions/{newer.pk}/{path}{mark}limit=10&cursor={first['next']}")
        assert [one.get("id", one.get("task_id")) for one in first["items"] + second["items"]] == pks
        for query in (one["sql"] for one in asked.captured_queries if one["sql"].startswith("SELECT")):
            cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {query}")
            plan = cursor.fetchone()[0][0]["Plan"]
            assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] < 300, plan  # the older tasks have 600


@pytest.mark.parametrize("compared", [1, 3, 100])
def test_tasks_that_were_added_later_are_listed_however_far_their_ids_are(
    program: Program, compared: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "COMPARED", compared)
    (execution, tasks), (other, _) = made(3), made(1)
    for _ in range(3):
        add_tasks(other.pk, [NewTask()] * 5)
        tasks += add_tasks(execution.pk, [NewTask()] * 3)
    for limit in (2, 3, 100):
        found, cursor = [], ""
        while cursor is not None:
            page = program.get(f"/executions/{execution.pk}/tasks?limit={limit}&cursor={cursor}")
            found += [one["id"] for one in page["items"]]
            cursor = page["next"]
        assert found == tasks


def test_extra_attrs_are_replaced_also_after_the_end_and_nothing_else_changes(program: Program) -> None:
    execution, tasks = made(2)
    report([Report(pk, "Success", 1) for pk in tasks])
    refresh([execution.pk])
    before = rows(Execution), rows(Task)
    for path in (f"/executions/{execution.pk}", f"/tasks/{tasks[0]}"):
        for given in ({"artifact": {"digest": "sha256:1"}, "n": 1}, {"n": 2}):
            assert program.patch(path, {"extra_attrs": given})["extra_attrs"] == given
            assert program.get(path)["extra_attrs"] == given
    for of, pk in zip(before, (execution.pk, tasks[0]), strict=True):
        of[pk] |= {"extra_attrs": {"n": 2}}
    assert (rows(Execution), rows(Task)) == before


def test_a_row_that_stays_locked_is_503_and_only_the_log_names_its_table(
    program: Program, database: str, caplog: pytest.LogCaptureFixture
) -> None:
    _, (task,) = made(1)
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '50ms'")
    with statement_held_open("SELECT FROM task WHERE id = %s FOR UPDATE", [task]):
        refused = program.send("PATCH", f"/tasks/{task}", {"extra_attrs": {}})
    assert (refused["Retry-After"], answered(refused, 503)["detail"]) == (
        "5",
        "another transaction has held the row for too long, or the statement took too long",
    )
    (line,) = [one.getMessage() for one in caplog.records if one.name == "django.request"]
    assert line.startswith(f"Service Unavailable: /api/v1/tasks/{task}: canceling statement due to lock timeout")
    program.patch(f"/tasks/{task}", {"extra_attrs": {}})


def test_extra_attrs_of_what_is_not_there_or_cannot_be_stored_are_refused(program: Program) -> None:
    execution, (task,) = made(1)
    for path in ("/executions/7777", "/tasks/7777"):
        assert "there is no" in program.patch(path, {"extra_attrs": {}}, 404)["detail"]
    for path in (f"/executions/{execution.pk}", f"/tasks/{task}"):
        for given, code in (({"extra_attrs": [1]}, 422), ({}, 422), ({"extra_attrs": {"a": "\x00"}}, 400)):
            program.patch(path, given, code)
    assert Execution.objects.get().extra_attrs == Task.objects.get().extra_attrs == {}
