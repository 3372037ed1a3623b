"""Executions are created, looked at, added to, finished, refreshed and deleted over HTTP."""

from typing import Any
from urllib.parse import urlencode

import pytest
from django.db import connection

from harbor_refresh.executions.database import HELD
from harbor_refresh.executions.lifecycle.quarantines import quarantine
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.models import AuditEntry, Execution, StatusChange, Task
from harbor_refresh.executions.news.after_commit import Member
from tests.integration.concurrency import statement_held_open
from tests.integration.executions.api.api_client import Program, answered
from tests.integration.sample_executions import drifted, made

UUID = "8f14e45f-ceea-467f-9575-18f6a2d1b0a3"
NEW = {
    "vendor_type": "REPLICATION",
    "vendor_id": 7,
    "trigger": "SCHEDULE",
    "extra_attrs": {"policy": {"name": "nightly"}},
    "tasks": [{"job_id": "a"}, {"job_id": "b", "extra_attrs": {"blob": 1}}],
}
WITHOUT_TIMES = {
    "vendor_type": "REPLICATION",
    "vendor_id": 7,
    "vendor_key": "7",
    "status": "Running",
    "status_message": "",
    "trigger": "SCHEDULE",
    "extra_attrs": {"policy": {"name": "nightly"}},
    "end_time": None,
    "revision": 0,
}


def without_times(answer: dict[str, Any]) -> dict[str, Any]:
    assert answer.pop("start_time").endswith("Z")
    assert answer.pop("update_time").endswith("Z")
    return answer


def test_an_execution_is_created_with_its_tasks_in_their_order(program: Program) -> None:
    created = program.post("/executions", NEW, 201)
    execution = Execution.objects.get()
    tasks = list(Task.objects.order_by("pk").values("pk", "job_id", "extra_attrs", "status", "vendor_type"))
    assert without_times(created) == {
        **WITHOUT_TIMES,
        "id": execution.pk,
        "task_ids": [task.pop("pk") for task in tasks],
    }
    assert tasks == [
        {"job_id": "a", "extra_attrs": {}, "status": "Pending", "vendor_type": "REPLICATION"},
        {"job_id": "b", "extra_attrs": {"blob": 1}, "status": "Pending", "vendor_type": "REPLICATION"},
    ]


@pytest.mark.parametrize(
    ("wrong", "status", "where"),
    [
        ({"vendor_type": "A:B"}, 422, "body.vendor_type"),
        ({"vendor_id": True}, 422, "body.vendor_id: takes a whole number"),
        ({"vendor_id": "x" * 256}, 422, "a UUID, or text of 1 to 255 characters"),
        ({"vendor_id": "x\x00"}, 422, "a UUID, or text of 1 to 255 characters"),
        ({"vendor_id": 7.0}, 201, ""),
        ({"tasks": [{"job_id": "j" * 65}]}, 422, "body.tasks.0.job_id"),
        ({"tasks": [{}] * 10_001}, 422, "body.tasks"),
        ({"misspelt": 1}, 422, "body.misspelt"),
        ({"extra_attrs": {"text": "\x00"}}, 400, "NUL"),
    ],
)
def test_what_cannot_be_stored_is_refused_whole(
    program: Program, wrong: dict[str, Any], status: int, where: str
) -> None:
    answer = program.post("/executions", {**NEW, **wrong}, status)
    assert where in str(answer)
    assert Execution.objects.count() == (status == 201)


@pytest.mark.parametrize(
    ("given", "key"), [("7", "7"), ("007", "007"), (UUID, UUID), ("\U0001f4e6 a b", "\U0001f4e6 a b")]
)
def test_an_execution_is_created_and_found_by_text(program: Program, given: str, key: str) -> None:
    created = program.post("/executions", {**NEW, "vendor_id": given}, 201)
    other = program.post("/executions", {**NEW, "vendor_id": "another"}, 201)
    query = urlencode({"vendor_id": given})
    listed = [program.get(f"/executions?{query}{more}") for more in ("", "&vendor_type=REPLICATION")]
    assert [[one["id"] for one in page["items"]] for page in listed] == [[created["id"]]] * 2
    shown = [created, listed[0]["items"][0], program.get(f"/executions/{created['id']}")]
    assert [one["vendor_key"] for one in shown] == [key] * 3
    assert [one["vendor_key"] for one in program.get("/executions")["items"]] == ["another", key]
    asked = program.post("/executions/stop", {"vendor_id": given, "dry_run": True}, 200)
    assert asked == {"count": 1, "is_complete": True}
    assert (created["vendor_id"] == 7, created["vendor_id"] < 0) == (
        (True, False) if key == "7" else (False, True)
    )
    assert other["vendor_id"] not in (7, created["vendor_id"])


def test_one_execution_tells_its_counts_and_its_progress(program: Program) -> None:
    created = program.post("/executions", NEW, 201)
    first, _ = created["task_ids"]
    report([Report(first, "Success")])
    looked_at = program.get(f"/executions/{created['id']}")
    assert without_times(looked_at) == {
        **WITHOUT_TIMES,
        "id": created["id"],
        "counts": {"Pending": 1, "Success": 1},
        "tasks": 2,
        "progress": 0.5,
        "quarantine": None,
    }


def test_an_execution_in_quarantine_says_why(program: Program) -> None:
    execution, _ = made()
    quarantine([execution.pk], 5, {execution.pk: "value too long"})
    assert program.get(f"/executions/{execution.pk}")["quarantine"] == "value too long"


@pytest.mark.parametrize("path", ["", "/tasks", "/history"])
def test_an_unknown_execution_is_404(program: Program, path: str) -> None:
    assert program.get(f"/executions/7{path}", 404) == {
        "type": "about:blank",
        "title": "Not found",
        "status": 404,
        "detail": "there is no execution 7",
    }


def test_tasks_are_added_to_an_execution_that_has_not_ended(program: Program) -> None:
    execution, tasks = made(1)
    added = program.post(f"/executions/{execution.pk}/tasks", {"tasks": [{"job_id": "x"}, {}]}, 201)
    assert added["task_ids"] == list(Task.objects.order_by("pk").values_list("pk", flat=True))[1:]
    report([Report(pk, "Success") for pk in (*tasks, *added["task_ids"])])
    program.post(f"/executions/{execution.pk}/refresh")
    refused = program.post(f"/executions/{execution.pk}/tasks", {"tasks": [{}]}, 409)
    assert refused["detail"] == f"execution {execution.pk} is Success already: create another one"
    assert Task.objects.count() == 3
    program.post("/executions/7777/tasks", {"tasks": [{}]}, 404)


def test_a_refresh_is_done_in_the_request(program: Program) -> None:
    execution = drifted()
    refreshed = program.post(f"/executions/{execution.pk}/refresh")
    assert (refreshed["status"], refreshed["revision"], refreshed["progress"]) == ("Success", 1, 1.0)
    program.post("/executions/7777/refresh", status=404)


def test_a_refresh_of_a_row_that_stays_locked_is_tried_again_later(program: Program) -> None:
    execution = drifted()
    path = f"/executions/{execution.pk}/refresh"
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '50ms'")
    with statement_held_open("SELECT FROM execution WHERE id = %s FOR UPDATE", [execution.pk]):
        refused = program.send("POST", path)
    assert (refused["Retry-After"], answered(refused, 503)["detail"]) == ("5", HELD)
    assert not AuditEntry.objects.exists()
    assert program.post(path)["status"] == "Success"


def test_an_execution_without_tasks_is_finished_by_hand_once(program: Program) -> None:
    execution, _ = made(0)
    path = f"/executions/{execution.pk}/finish"
    finished = program.post(path, {"status": "Error", "message": "no space"})
    assert (finished["status"], finished["status_message"], finished["progress"]) == ("Error", "no space", 1.0)
    assert "is Error already" in program.post(path, {"status": "Success"}, 409)["detail"]
    program.post(path, {"status": "Stopped"}, 422)
    with_tasks, _ = made(1)
    assert "has tasks" in program.post(f"/executions/{with_tasks.pk}/finish", {"status": "Success"}, 409)["detail"]


def test_the_history_comes_in_pages_the_oldest_first(program: Program) -> None:
    execution, (task,) = made(1)
    for run in range(3):
        for status in ("Running", "Error"):
            report([Report(task, status, run)])
            program.post(f"/executions/{execution.pk}/refresh")
    first = program.get(f"/executions/{execution.pk}/history?limit=2")
    second = program.get(f"/executions/{execution.pk}/history?limit=3&cursor={first['next']}")
    third = program.get(f"/executions/{execution.pk}/history?limit=3&cursor={second['next']}")
    shown = [(one["revision"], one["from"], one["to"]) for one in first["items"] + second["items"]]
    stored = StatusChange.objects.values_list("revision", "from_status", "to_status")
    assert shown == list(stored)
    assert len(shown) == 5
    assert third == {"items": [], "next": None}


def test_an_execution_is_deleted_when_its_tasks_have_ended(program: Program, changed: list[Member]) -> None:
    execution, (task,) = made(1)
    path = f"/executions/{execution.pk}"
    refused = program.delete(path, 412)
    assert refused["detail"].endswith("has not ended: stop it, or finish it if it has no tasks")
    assert Task.objects.count() == 1
    report([Report(task, "Success")])
    program.delete(path)
    assert (Execution.objects.count(), Task.objects.count(), StatusChange.objects.count()) == (0, 0, 0)
    program.delete(path, 404)


@pytest.mark.parametrize(
    ("path", "where"),
    [
        ("/executions?limit=0", "query.limit"),
        ("/executions?status=x", "query.status.0"),
        ("/executions?vendor_typ=SCAN", "query"),
        ("/tasks/0", "path.task_id"),
    ],
)
def test_an_error_names_the_parameter(program: Program, path: str, where: str) -> None:
    assert program.get(path, 422)["errors"][0]["where"] == where


def test_a_method_that_an_address_does_not_have_is_a_problem(program: Program) -> None:
    answer = program.send("PATCH", "/executions/7/tasks")
    assert (answer.status_code, answer["Content-Type"]) == (405, "application/problem+json")
    assert sorted(answer["Allow"].split(", ")) == ["GET", "POST"]
