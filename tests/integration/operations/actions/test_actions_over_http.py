"""Actions over HTTP: what is asked for, what is answered, and what is refused."""

import json
from contextlib import suppress
from typing import Any

import pytest

from harbor_refresh.executions.api.access import Scope
from harbor_refresh.executions.errors import Refused, TooManyActions
from harbor_refresh.executions.models import Execution, Task
from harbor_refresh.executions.news.audit import Origin, Person, Word
from harbor_refresh.executions.queries.chosen_pages import BULK
from harbor_refresh.executions.queries.filters import Filter
from harbor_refresh.tasks.broker.celery_queues import TICKS
from harbor_refresh.tasks.broker.channels import waiting
from harbor_refresh.tasks.jobs import start
from harbor_refresh.tasks.operations import bulk
from harbor_refresh.tasks.operations.bulk import MAX_OPEN
from tests.integration.concurrency import at_once
from tests.integration.database_state import rows
from tests.integration.executions.api.api_client import Program, token
from tests.integration.operations.actions.sample_bulk import statuses, with_jobs
from tests.integration.sample_actions import actions, asked, work_off

pytestmark = pytest.mark.usefixtures("database", "redis")

VERBS = ["stop", "retry", "resume", "refresh", "delete"]


@pytest.fixture
def program(database: str) -> Program:
    return Program(token(*Scope))


def test_an_action_is_asked_for_done_and_looked_at(program: Program) -> None:
    """As any execution."""
    with_jobs(4), with_jobs(2, "GC")
    asked = program.post("/executions/stop", {"vendor_type": "SCAN", "status": "Running"}, 202)
    assert (asked["vendor_type"], asked["status"], asked["progress"]) == ("BULK_ACTION", "Running", 0)
    assert asked["extra_attrs"] == {
        "verb": "stop",
        "filter": {"vendor_type": "SCAN", "statuses": ["Running"]},
        "by": "read-report-manage (token 1)",
        "from": "api",
    }
    work_off()
    done = program.get(f"/executions/{asked['id']}")
    assert (done["status"], done["progress"]) == ("Success", 1)
    results = program.get(f"/executions/{asked['id']}/results")["items"]
    assert results[-1]["value"] == {"changed": 4, "skipped": 0, "failed": 0, "ids": [], "error": ""}
    assert statuses() == {"Stopped": 4, "Running": 2}
    assert [one["id"] for one in program.get("/executions?vendor_type=BULK_ACTION")["items"]] == [asked["id"]]


def test_each_verb_counts_and_refuses_a_filter_without_a_condition_unless_it_is_meant(program: Program) -> None:
    with_jobs(4), with_jobs(2, "GC")
    for verb in VERBS:
        path = f"/executions/{verb}"
        for dry_run in (True, False):
            assert program.post(path, {"dry_run": dry_run}, 400)["detail"].startswith("the filter is empty")
        counted = program.post(path, {"vendor_type": "SCAN", "dry_run": True})
        assert counted == {"count": 4, "is_complete": True}
        assert program.post(path, {"all": True, "dry_run": True})["count"] == 6
    assert not actions().exists()
    assert waiting(TICKS) == 0
    for verb in VERBS[:MAX_OPEN]:
        asked = program.post(f"/executions/{verb}", {"all": True}, 202)
        assert asked["extra_attrs"]["verb"] == verb
    path = f"/executions/{VERBS[MAX_OPEN]}"
    assert program.post(path, {"all": True}, 409)["title"] == "Too many actions are open"
    program.post(f"/executions/{asked['id']}/stop")
    assert program.post(path, {"all": True}, 202)["extra_attrs"]["verb"] == VERBS[MAX_OPEN]


def test_requests_at_once_open_no_more_actions_than_one_after_the_other() -> None:
    with_jobs(1)

    def ask() -> bool:
        with suppress(TooManyActions):
            return bool(bulk.ask(Word.REFRESH, Filter(), Person("", Origin.API), everything=True))
        return False

    assert sum(at_once(*[ask] * 8)) == MAX_OPEN


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"status": ["Running", "Error"], "all": False}, 202),
        ({"status": "Succeed"}, 422),
        ({"colour": "red"}, 422),
        ({"vendor_type": "x" * 65}, 422),
        ({"vendor_type": "\x00"}, 400),
        ({"attributes": {str(number): "" for number in range(6)}}, 422),
        ({"attributes": {"a": 1}}, 422),
        ({"started_after": "2026-01-31T12:00:00"}, 422),
        ({"started_before": "2026-01-31T12:00:00Z"}, 202),
        ({"vendor_id": 2**63}, 422),
        ({"vendor_id": "a key"}, 202),
        ({"vendor_id": "x" * 256}, 422),
        ({"has_jobs": True}, 202),
        ({"has_jobs": "some"}, 422),
        ([], 422),
    ],
)
def test_a_filter_is_taken_or_refused_with_its_reason(program: Program, body: Any, status: int) -> None:
    program.post("/executions/stop", body, status)
    assert actions().exists() == (status == 202)


def test_only_an_action_makes_executions_of_its_type_and_nothing_else_changes_or_extends_them() -> None:
    """Others would count as open actions; and what an action says that it does tells who may resume it."""
    action = asked()
    task = action.tasks.earliest("pk")
    before = rows(Execution), rows(Task)
    reporter = Program(token(Scope.REPORT))
    requests = (
        ("POST", "/executions", {"vendor_type": BULK}),
        ("POST", f"/executions/{action.pk}/tasks", {"tasks": [{}]}),
        ("PATCH", f"/executions/{action.pk}", {"extra_attrs": {"verb": "stop"}}),
        ("PATCH", f"/tasks/{task.pk}", {"extra_attrs": {"verb": "stop"}}),
    )
    answers = [json.loads(reporter.send(*one).content).get("detail") for one in requests]
    assert answers == ["vendor type BULK_ACTION is reserved for actions on many executions"] * 4
    with pytest.raises(Refused, match="reserved for actions"):
        start(BULK, jobs=[])
    assert (rows(Execution), rows(Task)) == before
