"""Reports over HTTP: one, and thousands in one request, each answered."""

from typing import Any

import pytest

from harbor_refresh.executions.models import Task
from harbor_refresh.executions.news.after_commit import Member
from tests.integration.executions.api.api_client import Program
from tests.integration.sample_executions import made


def states() -> list[tuple[Any, ...]]:
    return list(
        Task.objects.order_by("pk").values_list("status", "status_revision", "run_count", "status_message")
    )


def test_each_report_of_a_batch_is_answered(program: Program, changed: list[Member]) -> None:
    execution, (first, second) = made(2)
    answer = program.post(
        "/reports",
        {
            "reports": [
                {"task_id": first, "status": "Running", "revision": 1},
                {"task_id": first, "status": "Running", "revision": 1},
                {"task_id": second, "status": "Succeed"},
                {"task_id": 7777, "status": "Success"},
                {"task_id": second, "status": "Error", "message": "no space left"},
                {"task_id": second, "status": "Running"},
                {"task_id": second, "status": "Success", "revision": -1},
            ]
        },
    )
    takes = "takes Pending, Scheduled, Running, Stopped, Error, Success"
    assert answer == {
        "applied": 2,
        "unchanged": 2,
        "refused": 3,
        "results": [
            {"position": 0, "task_id": first, "result": "applied", "reason": None},
            {"position": 1, "task_id": first, "result": "unchanged", "reason": None},
            {
                "position": 2,
                "task_id": second,
                "result": "refused",
                "reason": f"unknown status 'Succeed'; {takes}",
            },
            {"position": 3, "task_id": 7777, "result": "refused", "reason": "there is no task 7777"},
            {"position": 4, "task_id": second, "result": "applied", "reason": None},
            {"position": 5, "task_id": second, "result": "unchanged", "reason": None},
            {
                "position": 6,
                "task_id": second,
                "result": "refused",
                "reason": "malformed revision -1; takes a whole number from 0 to 2^61 - 2^32",
            },
        ],
    }
    assert states() == [("Running", 1, 1, ""), ("Error", 0, 0, "no space left")]
    assert changed == [(execution.pk, "TEST")]


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ({"reports": [{"task_id": "one", "status": "Running"}]}, "body.reports.0.task_id"),
        ({"reports": [{"task_id": 1}]}, "body.reports.0.status"),
        ({"reports": [{"task_id": 1, "status": "Running", "revison": 1}]}, "body.reports.0.revison"),
        ({"reports": [{"task_id": 1, "status": "Running"}] * 10_001}, "body.reports"),
        ({}, "body.reports"),
        ([], "body"),
    ],
)
def test_a_request_that_is_not_as_described_changes_nothing(program: Program, body: Any, where: str) -> None:
    assert program.post("/reports", body, 422)["errors"][0]["where"] == where


@pytest.mark.parametrize(
    "body", ["{", "[" * 100_000, '{"reports": NaN}', b"\xff", '{"reports": [1' + "0" * 5_000 + "]}"]
)
def test_a_body_that_is_no_json_is_400(program: Program, body: Any) -> None:
    assert program.post("/reports", body, 400)["title"] == "The request cannot be used"


def test_a_body_that_is_too_large_is_413(program: Program) -> None:
    assert program.post("/reports", b" " * (10 * 1024**2 + 1), 413)["title"] == "The request is too large"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("[" + "0," * 499_999 + "0]", 422),
        ("[" + "0," * 500_000 + "0]", 413),
        (("[" + "0," * 500_000 + "0]").encode("utf-16"), 413),
        ('["' + "," * 500_000 + '"]', 413),
        ("[" + "{}," * 250_000 + "0]", 413),
        ("," * 500_001, 413),
    ],
    ids=["most", "one more", "utf-16", "in a text", "objects", "before it is parsed"],
)
def test_a_body_holds_so_many_values(program: Program, body: str | bytes, status: int) -> None:
    """Its memory follows its values more than its bytes. Marks within a text count, too."""
    answer = program.post("/reports", body, status)
    if status == 413:
        assert answer["title"] == "The request is too large"
        assert "500,000 commas, [ and {, also in texts" in answer["detail"]


def test_of_too_many_errors_none_is_named(program: Program) -> None:
    """Pydantic makes a dictionary of each, which takes far more memory than the request."""
    body = dict.fromkeys(map(str, range(50_000)), 0)
    answer = program.post("/reports", body, 422)
    assert answer["detail"] == "50,001 values are not as described, too many to name one"
    body.popitem()
    assert len(program.post("/reports", body, 422)["errors"]) == 20


def test_one_report_is_applied_or_changes_nothing(program: Program) -> None:
    _, (task,) = made(1)
    path = f"/tasks/{task}/report"
    applied = {"position": 0, "task_id": task, "result": "applied", "reason": None}
    assert program.post(path, {"status": "Running", "revision": 3}) == applied
    assert program.post(path, {"status": "Running", "revision": 2}) == {**applied, "result": "unchanged"}
    assert states() == [("Running", 3, 1, "")]


def test_one_report_that_cannot_be_used_is_an_error(program: Program) -> None:
    _, (task,) = made(1)
    assert (
        "unknown status 'Succeed'" in program.post(f"/tasks/{task}/report", {"status": "Succeed"}, 400)["detail"]
    )
    assert program.post("/tasks/7777/report", {"status": "Success"}, 404)["detail"] == "there is no task 7777"
