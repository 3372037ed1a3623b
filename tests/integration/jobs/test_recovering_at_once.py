"""Recovery of jobs while somebody else does something with them: another pass, or the job itself."""

from collections import Counter
from collections.abc import Callable, Sequence
from threading import Barrier
from typing import Any

import pytest

from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.tasks.jobs.delivery.followers import deliver_and_publish
from harbor_refresh.tasks.jobs.lifecycle.job_report import JobReport
from harbor_refresh.tasks.jobs.lifecycle.message import Message
from harbor_refresh.tasks.jobs.lifecycle.task_state import TaskState
from harbor_refresh.tasks.jobs.records import pages
from harbor_refresh.tasks.jobs.records.records import job_records
from harbor_refresh.tasks.jobs.records.run import Run
from harbor_refresh.tasks.jobs.repair import job_recovery
from harbor_refresh.tasks.jobs.repair.job_recovery import Recovered, recover_jobs
from tests.integration.concurrency import DEADLINE_SECONDS, at_once
from tests.integration.jobs.sample_jobs import (
    RUNS,
    WAITS,
    Outbox,
    known,
    record,
    recorded,
    stands,
    state,
    unpublished,
    write,
)
from tests.integration.redis_state import Redis

pytestmark = pytest.mark.usefixtures("database", "nodes")


@pytest.mark.parametrize("end", ["Success", "Error"])
def test_a_job_that_ends_while_it_is_being_given_back_has_ended(
    end: str, redis: Redis, outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its node was taken for dead, and comes back when the database has just said that it goes on."""
    recorded("j")
    outbox.taken()
    stands("j", "Running")
    write(redis, record(**RUNS, node="dead"))
    ask = job_recovery.task_states

    def ask_and_let_it_end(task_ids: Sequence[int]) -> dict[int, TaskState]:
        found = ask(task_ids)
        run = Run("j", task_ids[0], "dead", 0, 1)
        assert job_records().settle(run, end, "why") == 0
        deliver_and_publish([JobReport("j", run.task_id, 0, end, "why")])
        return found

    monkeypatch.setattr(job_recovery, "task_states", ask_and_let_it_end)
    assert recover_jobs(outbox.publish) == Recovered()
    assert known(redis) == state({"j": (end, 0, 0, "why")})
    assert outbox.taken() == []


def test_a_job_whose_end_lands_while_it_is_being_given_back_has_ended(
    redis: Redis, outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its node cannot reach Redis, and reports the end to the database when that has just said that it goes on."""
    recorded("j")
    outbox.taken()
    stands("j", "Running")
    write(redis, record(**RUNS, node="dead"))
    ask = job_recovery.task_states

    def ask_and_let_it_end(task_ids: Sequence[int]) -> dict[int, TaskState]:
        found = ask(task_ids)
        report([Report(task_ids[0], "Success", 0)])
        return found

    monkeypatch.setattr(job_recovery, "task_states", ask_and_let_it_end)
    assert recover_jobs(outbox.publish) == Recovered(given_back=1, landed=1)
    assert known(redis) == state({"j": ("Success", 0, 0, "")})
    assert outbox.taken() == []


@pytest.fixture
def sixty(outbox: Outbox) -> list[str]:
    jobs = [f"j{number}" for number in range(60)]
    recorded(*jobs)
    outbox.taken()
    return jobs


@pytest.fixture
def two_passes(outbox: Outbox, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[Recovered]]:
    """At once: they go on when both have read the same page."""
    barrier, read = Barrier(2), pages.readable

    def read_by_both(page: Any) -> Any:
        found = read(page)
        barrier.wait(DEADLINE_SECONDS)
        return found

    monkeypatch.setattr(job_recovery, "readable", read_by_both)
    return lambda: at_once(*[lambda: recover_jobs(outbox.publish)] * 2)


def test_two_passes_at_once_give_a_job_back_once_with_one_message(
    redis: Redis, outbox: Outbox, sixty: list[str], two_passes: Callable[[], list[Recovered]]
) -> None:
    write(redis, *(record(job, node="dead") for job in sixty))
    assert sum(one.given_back for one in two_passes()) == 60
    assert outbox.taken() == sorted((job, 1, 1) for job in sixty)
    assert known(redis)["tasks"] == dict.fromkeys(sixty, ("Pending", 1, 1, ""))


def test_two_passes_at_once_send_what_was_not_sent_once(
    redis: Redis, outbox: Outbox, sixty: list[str], two_passes: Callable[[], list[Recovered]]
) -> None:
    for job in sixty:
        stands(job, "Scheduled", 1, 1)
    write(redis, *(record(job, **WAITS, sent=False) for job in sixty))
    two_passes()
    assert Counter(job for job, _, _ in outbox.taken()) == Counter(sixty)


def test_a_pass_leaves_alone_what_another_is_publishing(redis: Redis, outbox: Outbox) -> None:
    unpublished(outbox, "a", "b")
    meanwhile: list[Recovered] = []

    def publish_while_another_passes(messages: Sequence[Message]) -> None:
        meanwhile.extend(at_once(lambda: recover_jobs(outbox.publish)))
        outbox.publish(messages)

    assert recover_jobs(publish_while_another_passes) == Recovered(sent=2)
    assert meanwhile == [Recovered()]
    assert outbox.taken() == [("a", 0, 0), ("b", 0, 0)]
