"""Recovery of jobs: what becomes of each record, over a real Redis and a real database."""

from dataclasses import dataclass
from typing import Any

import pytest

from harbor_refresh.tasks import pacing
from harbor_refresh.tasks.jobs.repair.job_recovery import Recovered, recover_jobs
from tests.integration.jobs.sample_jobs import (
    RUNS,
    TOO_LONG,
    WAITS,
    Outbox,
    alive,
    known,
    record,
    recorded,
    stands,
    state,
    unpublished,
    write,
)
from tests.integration.redis_state import Clock, Redis

pytestmark = pytest.mark.usefixtures("database", "nodes")


@dataclass(frozen=True)
class Case:
    """`task` is its status, revision and run count; `sent` the revision and runs of the message that went out.
    What is not told of afterwards is as before."""

    record: dict[str, Any]
    then: Recovered
    after: dict[str, Any] | None
    task: tuple[str, int, int] = ("Running", 0, 0)
    task_after: tuple[str, int, int] | None = None
    sent: tuple[int, int] | None = None


def left(task: tuple[str, int, int], **parts: Any) -> Case:
    return Case(parts, Recovered(), parts, task)


def forgotten(task: tuple[str, int, int], **parts: Any) -> Case:
    return Case(parts, Recovered(), None, task)


GIVEN_BACK = Recovered(given_back=1, landed=1, sent=1)
AGAIN: dict[str, Any] = {"status": "Pending", "revision": 1, "acknowledged": (1, "Pending"), "ago": 0}
#: Whoever sends it has checked it in.
SENT: dict[str, Any] = WAITS | {"acknowledged": (1, "Scheduled", TOO_LONG), "ago": 0}

CASES = {
    "on a dead node: it waits again, in a new revision, and has one message": Case(
        RUNS | {"node": "dead"}, GIVEN_BACK, RUNS | AGAIN, task_after=("Pending", 1, 1), sent=(1, 1)
    ),
    "on a node that Redis has forgotten": Case(
        RUNS | {"node": "gone"}, GIVEN_BACK, RUNS | AGAIN, task_after=("Pending", 1, 1), sent=(1, 1)
    ),
    "on a dead node, before its first report has landed": Case(
        {"node": "dead"},
        GIVEN_BACK,
        AGAIN,
        task=("Pending", 0, 0),
        task_after=("Pending", 1, 1),
        sent=(1, 1),
    ),
    "on a dead node, in a later revision than the one the database knows": Case(
        {"node": "dead", "revision": 2, "runs": 3},
        GIVEN_BACK,
        {"status": "Pending", "revision": 3, "runs": 3, "acknowledged": (3, "Pending")},
        task=("Pending", 1, 1),
        task_after=("Pending", 3, 3),
        sent=(3, 3),
    ),
    "on a dead node, and the database knows of a later one that waits: it waits in that": Case(
        {"node": "dead", "acknowledged": (0, "Running")},
        Recovered(given_back=1, landed=1, sent=1),
        {"status": "Scheduled", "revision": 2, "acknowledged": (2, "Scheduled")},
        task=("Scheduled", 2, 2),
        sent=(2, 2),
    ),
    "on a dead node, and the database knows of a later one that ran: it waits in the next": Case(
        {"node": "dead", "acknowledged": (0, "Running")},
        GIVEN_BACK,
        {"status": "Pending", "revision": 3, "acknowledged": (3, "Pending")},
        task=("Running", 2, 2),
        task_after=("Pending", 3, 3),
        sent=(3, 3),
    ),
    "on a live node: it is never touched, however long it is silent": left(("Running", 0, 0), **RUNS, node="live"),
    "on a node whose last sign of life is as old as it may be": left(("Running", 0, 0), **RUNS, node="old"),
    "on a dead node, and the database has its end: the record is late": forgotten(
        ("Success", 0, 0), **RUNS, node="dead"
    ),
    "on a dead node, and the database has the end of a later run": forgotten(
        ("Error", 3, 2), acknowledged=(2, "Running"), revision=2, node="dead"
    ),
    "runs, and its report is late: it is made again": Case(
        {"node": "live", "ago": TOO_LONG, "message": "layer 3"},
        Recovered(landed=1),
        {"node": "live", "ago": TOO_LONG, "message": "layer 3", "acknowledged": (0, "Running")},
        task=("Pending", 0, 0),
        task_after=("Running", 0, 0),
    ),
    "runs, and its report may still be on its way": left(("Pending", 0, 0), node="live", ago=10),
    "runs, and its task was stopped meanwhile: it is asked to stop": Case(
        {"node": "live", "ago": TOO_LONG},
        Recovered(),
        {"node": "live", "ago": TOO_LONG, "asked": True},
        task=("Stopped", 0, 0),
    ),
    "on a dead node, in a later revision, and its task has ended: what has ended stays so": forgotten(
        ("Stopped", 1, 1), revision=2, node="dead"
    ),
    "has ended, and that is late: it is reported and forgotten": Case(
        {"status": "Success", "node": "dead", "acknowledged": (0, "Running"), "ago": TOO_LONG},
        Recovered(landed=1),
        None,
        task_after=("Success", 0, 0),
    ),
    "has ended, and that may still be on its way": left(
        ("Running", 0, 0), status="Success", node="dead", acknowledged=(0, "Running"), ago=10
    ),
    "waits and was not sent: it is sent": Case(
        WAITS | {"sent": False}, Recovered(sent=1), SENT, task=("Scheduled", 1, 1), sent=(1, 1)
    ),
    "waits, and may be about to be sent": left(("Scheduled", 1, 1), **WAITS | {"sent": False, "ago": 10}),
    "waits, and is to run later": left(("Scheduled", 1, 1), **WAITS | {"sent": False, "ago": -3600}),
    "waits in the backlog": left(("Scheduled", 1, 1), **WAITS | {"ago": 3600}),
    "waits, was not sent, and has been stopped: it is forgotten": forgotten(
        ("Stopped", 1, 1), **WAITS | {"sent": False}
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_becomes_of_a_job_and_a_second_pass_finds_nothing_to_do(
    name: str, redis: Redis, outbox: Outbox
) -> None:
    case = CASES[name]
    recorded("j")
    outbox.taken()
    stands("j", *case.task)
    write(redis, record(**case.record))
    before = known(redis)["tasks"]["j"]
    message = before[3] if case.task_after in (None, case.task) else case.record.get("message", "")
    expected = state(
        {"j": (*(case.task_after or case.task), message)},
        [record(**case.after)] if case.after else [],
    )

    assert recover_jobs(outbox.publish) == case.then
    assert known(redis) == expected
    assert outbox.taken() == ([("j", *case.sent)] if case.sent else [])

    assert recover_jobs(outbox.publish) == Recovered()
    assert (known(redis), outbox.taken()) == (expected, [])


def test_what_waits_and_was_neither_reported_nor_sent_is_both_in_two_passes(redis: Redis, outbox: Outbox) -> None:
    recorded("j")
    outbox.taken()
    unknown = WAITS | {"acknowledged": (0, "Running", 60), "message": "OSError: not yet"}
    write(redis, record(**unknown, sent=False))
    assert [recover_jobs(outbox.publish) for _ in range(3)] == [
        Recovered(landed=1),
        Recovered(sent=1),
        Recovered(),
    ]
    assert outbox.taken() == [("j", 1, 1)]
    waits = record(**SENT | {"message": "OSError: not yet"})
    assert known(redis) == state({"j": ("Scheduled", 1, 1, "OSError: not yet")}, [waits])


def test_a_host_and_a_process_number_that_are_used_again_hide_nobody_who_died(
    redis: Redis, outbox: Outbox, clock: Clock
) -> None:
    """A container that restarts has the name of its predecessor, and its process the same number."""
    recorded("before", "after")
    outbox.taken()
    for job in ("before", "after"):
        stands(job, "Running")
    leases = {"before": TOO_LONG, "after": 0.0}
    write(
        redis,
        *(
            record(job, node=f"same-7-{job}", acknowledged=(0, "Running"), renewed=renewed)
            for job, renewed in leases.items()
        ),
    )
    alive(redis, "same-7-after", clock)
    assert recover_jobs(outbox.publish) == GIVEN_BACK
    assert outbox.taken() == [("before", 1, 1)]
    assert known(redis)["tasks"] == {"before": ("Pending", 1, 1, ""), "after": ("Running", 0, 0, "")}


def test_jobs_whose_tasks_were_deleted_are_forgotten(redis: Redis, outbox: Outbox) -> None:
    execution = recorded("runs", "ended")
    write(redis, record("runs", node="dead"), record("ended", "Success", node="dead", ago=TOO_LONG))
    outbox.taken()
    execution.delete()
    assert recover_jobs(outbox.publish) == Recovered(landed=1)
    assert (known(redis), outbox.taken()) == (state({}), [])


def test_what_waits_in_the_backlog_is_not_sent_again_however_long_it_waits(
    redis: Redis, outbox: Outbox, clock: Clock
) -> None:
    recorded("was given back", "was not sent")
    unpublished(outbox, "was not published")
    outbox.taken()
    stands("was not sent", "Scheduled", 1, 1)
    write(redis, record("was given back", node="dead"), record("was not sent", **WAITS, sent=False))
    assert recover_jobs(outbox.publish) == Recovered(given_back=1, landed=1, sent=3)
    assert outbox.taken() == [("was given back", 1, 1), ("was not published", 0, 0), ("was not sent", 1, 1)]
    before = known(redis)
    for seconds in (1, TOO_LONG, 60, 3600):
        clock.move(seconds)
        assert recover_jobs(outbox.publish) == Recovered()
    assert (known(redis), outbox.taken()) == (before, [])


def test_what_is_to_run_later_is_sent_when_it_should_have_run_and_not_before(
    redis: Redis, outbox: Outbox, clock: Clock
) -> None:
    recorded("j")
    outbox.taken()
    stands("j", "Scheduled", 1, 1)
    write(redis, record(**WAITS | {"ago": -3600}, sent=False))
    clock.move(3600 + 10)
    assert (recover_jobs(outbox.publish), outbox.taken()) == (Recovered(), [])
    clock.move(0.000_001)
    assert (recover_jobs(outbox.publish), outbox.taken()) == (Recovered(sent=1), [("j", 1, 1)])


def test_what_was_recorded_and_never_published_is_published_once_and_asks_before_it_runs(
    redis: Redis, outbox: Outbox
) -> None:
    unpublished(outbox, "a", "b", ago=11)
    pending = {"a": ("Pending", 0, 0, ""), "b": ("Pending", 0, 0, "")}
    assert known(redis) == state(pending, unpublished=["a", "b"])
    assert recover_jobs(outbox.publish) == Recovered(sent=2)
    assert recover_jobs(outbox.publish) == Recovered()
    assert outbox.taken() == [("a", 0, 0), ("b", 0, 0)]
    assert known(redis) == state(pending)


def test_what_was_recorded_a_moment_ago_is_left_to_whoever_has_recorded_it(
    outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A moment is as long as a node may be silent."""
    monkeypatch.setattr(pacing, "NODE_TTL_SECONDS", 600)
    unpublished(outbox, "a", "b", ago=300)
    assert recover_jobs(outbox.publish) == Recovered()
    assert outbox.taken() == []
