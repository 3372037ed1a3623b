"""`harbor pause` and `resume`, and the same over HTTP."""

import pytest

from harbor_refresh.executions.api.access import Scope
from harbor_refresh.executions.models import AuditEntry
from harbor_refresh.tasks.broker.celery_queues import JOBS, TICKS, WORK
from harbor_refresh.tasks.operations.pauses import paused
from tests.integration.command_output import data, said
from tests.integration.executions.api.api_client import Program, token

pytestmark = pytest.mark.usefixtures("database", "redis")


def test_the_command_pauses_refreshing_and_stats_says_so() -> None:
    assert data("harbor", "pause", "--reason", "upgrade") == {
        "queue": WORK,
        "paused": True,
        "changed": True,
    }
    shown = said("harbor", "status")
    assert "An operator has paused refreshing." in shown
    assert "manage.py harbor unpause harbor_refresh" in shown
    assert data("harbor", "status")["paused"] == [WORK]
    assert said("harbor", "unpause") == "harbor_refresh is resumed."
    assert said("harbor", "unpause") == "harbor_refresh was not paused."
    assert data("harbor", "status")["paused"] == []


def test_a_program_pauses_and_resumes_a_queue() -> None:
    program = Program(token(Scope.READ, Scope.MANAGE, name="deployer"))
    assert program.post("/queue/pause", {"queue": JOBS, "reason": "upgrade"}) == {"changed": True}
    assert program.post("/queue/pause", {"queue": JOBS}) == {"changed": False}
    found = program.get("/queue")["paused"]
    assert [(one["queue"], one["reason"]) for one in found] == [(JOBS, "upgrade")]
    assert program.post("/queue/resume", {"queue": JOBS}) == {"changed": True}
    assert program.post("/queue/resume", {"queue": JOBS}) == {"changed": False}
    assert not paused()
    origins = AuditEntry.objects.order_by("pk").values_list("verb", "origin", "target")
    assert list(origins) == [("pause", "api", JOBS), ("resume", "api", JOBS)]


def test_a_program_is_told_why_a_queue_cannot_be_paused() -> None:
    program = Program(token(Scope.MANAGE))
    assert "cannot be paused" in program.post("/queue/pause", {"queue": TICKS}, 400)["detail"]
    assert "no worker takes" in program.post("/queue/pause", {"queue": "x"}, 404)["detail"]
