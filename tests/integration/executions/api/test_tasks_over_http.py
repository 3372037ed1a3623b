"""Tasks are looked at, one or in pages."""

import pytest
from django.db import connection

from harbor_refresh.executions.lifecycle.creation import NewExecution, NewTask, create
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
