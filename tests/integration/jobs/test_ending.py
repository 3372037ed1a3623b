"""end_waiting, end_running: a job that somebody outside of it has ended, as a table over its record."""

from dataclasses import dataclass
from typing import Any

import pytest
from celery.worker.request import Request

from harbor_refresh.executions.status import Status
from harbor_refresh.tasks.jobs import message_header
from harbor_refresh.tasks.jobs.lifecycle.ends import end_running, end_waiting, send_again
from harbor_refresh.tasks.jobs.records.record import JobRecord
from harbor_refresh.tasks.jobs.repair.job_recovery import Recovered, recover_jobs
from harbor_refresh.tasks.jobs.runtime import celery_events
from harbor_refresh.tasks.jobs.runtime.request import TrackedRequest
from tests.integration.jobs.sample_jobs import (
    TOO_LONG,
    Outbox,
    alive,
    known,
    record,
    recorded,
    stands,
    state,
    write,
)
from tests.integration.redis_state import Clock, Redis

pytestmark = pytest.mark.usefixtures("database", "clock")

RUNS: dict[str, Any] = {
    "revision": 2,
    "node": "n-7-1",
    "ago": 60,
    "acknowledged": (2, "Running"),
    "message": "layer 3",
}
WAITS: dict[str, Any] = {"status": "Scheduled", "revision": 2, "ago": -60, "sent": False, "message": "OSError"}
OVER: dict[str, Any] = {"status": "Success", "revision": 2, "node": "n-7-1", "ago": 60}
ENDED: dict[str, Any] = {"status": "Stopped", "node": "", "ago": 0, "message": "it was revoked"}


@dataclass(frozen=True)
class Case:
    """The parts of the record before and after; None if there is none."""

    before: dict[str, Any] | None
    after: dict[str, Any] | None

    @property
    def is_ended(self) -> bool:
        return self.before != self.after


WAITING = {
    "a job that nobody has heard of ends in the revision of its message": Case(
        None, ENDED | {"revision": 2, "runs": 0}
    ),
    "one that waits ends in the revision that it waits in": Case(WAITS, WAITS | ENDED),
    "one that waits to be run again after its node has died": Case(
        WAITS | {"status": "Pending", "acknowledged": (2, "Pending", 30)},
        WAITS | ENDED | {"acknowledged": (2, "Pending", 30)},
    ),
    "one that runs had another message, and goes on": Case(RUNS, RUNS),
    "one that is over is over": Case(OVER, OVER),
    "one that was ended before it began is over": Case(OVER | {"node": ""}, OVER | {"node": ""}),
}

RUNNING = {
    "one that runs ends": Case(RUNS, RUNS | ENDED | {"acknowledged": (2, "Running", 60)}),
    "one that waits had no run to be ended": Case(WAITS, WAITS),
    "one that is over is over": Case(OVER, OVER),
    "one that nobody knows anything of is left to the database": Case(None, None),
}


SENT_AGAIN = {
    "one that nobody has heard of waits for a message": Case(
        None, {"status": "Pending", "revision": 2, "runs": 0, "sent": False}
    ),
    "one that waits in that revision": Case(WAITS | {"sent": True}, WAITS),
    "one that waits in a later revision has a message of its own": Case(
        WAITS | {"revision": 3, "sent": True}, WAITS | {"revision": 3, "sent": True}
    ),
    "one that runs goes on": Case(RUNS, RUNS),
    "one that is over is over": Case(OVER, OVER),
}


def seen(parts: dict[str, Any] | None) -> list[JobRecord]:
    return [] if parts is None else [record(**parts)]


def given(redis: Redis, outbox: Outbox, case: Case) -> int:
    execution = recorded("j")
    outbox.taken()
    if case.before is not None:
        write(redis, record(**case.before))
    return execution.tasks.get().pk


@pytest.mark.parametrize("name", WAITING)
def test_end_waiting(name: str, redis: Redis, outbox: Outbox) -> None:
    case = WAITING[name]
    pk = given(redis, outbox, case)
    assert end_waiting("j", pk, 2, Status.STOPPED, "it was revoked") is case.is_ended
    assert known(redis) == state({"j": ("Pending", 0, 0, "")}, seen(case.after))
    assert end_waiting("j", pk, 2, Status.ERROR, "again") is False


def test_the_message_of_an_earlier_revision_ends_nothing(redis: Redis, outbox: Outbox) -> None:
    """It has expired, and the job waits for another try, which has a message of its own."""
    pk = given(redis, outbox, Case(WAITS, WAITS))
    assert end_waiting("j", pk, 1, Status.STOPPED, "it expired before it began") is False
    assert known(redis)["records"] == {"j": record(**WAITS)}


def test_a_run_that_was_given_to_another_host_is_not_ended_from_the_one_before(
    redis: Redis, outbox: Outbox
) -> None:
    given(redis, outbox, Case(RUNS, RUNS))
    assert end_running("j", "other", Status.ERROR, "TimeLimitExceeded") is False
    assert known(redis)["records"] == {"j": record(**RUNS)}


@pytest.mark.parametrize("name", RUNNING)
def test_end_running(name: str, redis: Redis, outbox: Outbox) -> None:
    case = RUNNING[name]
    given(redis, outbox, case)
    assert end_running("j", "n", Status.STOPPED, "it was revoked") is case.is_ended
    assert known(redis) == state({"j": ("Pending", 0, 0, "")}, seen(case.after))
    assert end_running("j", "n", Status.ERROR, "again") is False


@pytest.mark.parametrize("name", SENT_AGAIN)
def test_send_again(name: str, redis: Redis, outbox: Outbox) -> None:
    case = SENT_AGAIN[name]
    pk = given(redis, outbox, case)
    assert send_again("j", pk, 2) is case.is_ended
    assert known(redis) == state({"j": ("Pending", 0, 0, "")}, seen(case.after))


LIMIT: dict[str, Any] = {
    "status": "Error",
    "acknowledged": (2, "Running", 60),
    "message": "TimeLimitExceeded: TimeLimitExceeded(2,)",
}


@pytest.mark.parametrize(
    ("before", "after", "sent"),
    [
        (None, {"status": "Pending", "runs": 0, "sent": False}, 1),
        (RUNS, RUNS | ENDED | LIMIT, 0),
    ],
    ids=["before a run has begun", "of a run"],
)
def test_a_hard_limit_is_recorded_before_celery_acknowledges_the_message(  # noqa: PLR0917
    before: dict[str, Any] | None,
    after: dict[str, Any],
    sent: int,
    redis: Redis,
    outbox: Outbox,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A limit that strikes before the run has begun takes a message away that was to come again."""
    pk = given(redis, outbox, Case(before, None))
    then: list[Any] = []
    monkeypatch.setattr(Request, "on_timeout", lambda *_: then.append(known(redis)["records"]))
    monkeypatch.setattr(celery_events, "host_of", lambda _: "n")
    request = TrackedRequest.__new__(TrackedRequest)
    header = {"task": pk, "revision": before["revision"] if before else 0}
    request._request_dict = {"id": "j", message_header.NAME: header}
    request.on_timeout(False, 2)
    assert then == [{"j": record(**after)}]
    clock.move(TOO_LONG)
    for _ in range(2):  # the first pass reports it
        recover_jobs(outbox.publish)
    assert len(outbox.taken()) == sent


def test_a_soft_limit_is_for_the_run_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    then: list[Any] = []
    monkeypatch.setattr(Request, "on_timeout", lambda *_: then.append("Celery"))
    monkeypatch.setattr(celery_events, "on_hard_limit", lambda *_: then.append("recorded"))
    TrackedRequest.__new__(TrackedRequest).on_timeout(True, 2)
    assert then == ["Celery"]


@pytest.mark.parametrize("before", [None, WAITS, RUNS])
def test_recovery_reports_the_end_and_no_message_is_sent(
    before: dict[str, Any] | None, redis: Redis, outbox: Outbox, clock: Clock
) -> None:
    revision = before["revision"] if before else 2
    pk = given(redis, outbox, Case(before, None))
    stands("j", "Running" if before == RUNS else "Pending", revision, 1)
    if before == RUNS:
        assert end_running("j", "n", Status.STOPPED, "it was revoked")
    else:
        assert end_waiting("j", pk, 2, Status.STOPPED, "it was revoked")
    assert recover_jobs(outbox.publish) == Recovered()
    clock.move(TOO_LONG)
    alive(redis, "n-7-1", clock)
    assert recover_jobs(outbox.publish) == Recovered(landed=1)
    assert known(redis) == state({"j": ("Stopped", revision, 1, "it was revoked")})
    assert outbox.taken() == []


def test_a_run_that_goes_on_while_it_is_being_ended_keeps_what_it_has_said(
    redis: Redis, outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends between the look and the change: its own end stands."""
    from harbor_refresh.tasks.jobs.records.records import job_records

    pk = given(redis, outbox, Case(RUNS, None))
    records, ended = job_records(), record(**RUNS | {"status": "Success"})
    look = records.of

    def look_and_let_it_end(jobs: Any) -> Any:
        found = look(jobs)
        write(redis, ended)
        return found

    monkeypatch.setattr(records, "of", look_and_let_it_end)
    assert end_running("j", "n", Status.ERROR, "TimeLimitExceeded") is False
    write(redis, record(**WAITS))
    assert end_waiting("j", pk, 2, Status.STOPPED, "it was revoked") is False
    assert known(redis)["records"] == {"j": ended}
