"""Jobs that wait for their turn in a chain: recovery finds what has become of them, whatever was missed before."""

import random
import threading
from itertools import count

import pytest
from django.db import IntegrityError, transaction
from django.db.models import RestrictedError

from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.models import Execution, Task
from harbor_refresh.tasks.jobs.delivery.followers import deliver_and_publish
from harbor_refresh.tasks.jobs.lifecycle import chains
from harbor_refresh.tasks.jobs.lifecycle.job_report import JobReport
from harbor_refresh.tasks.jobs.lifecycle.retries import retry_failed
from harbor_refresh.tasks.jobs.repair.job_recovery import Recovered, recover_jobs
from harbor_refresh.tasks.models import Job
from tests.integration.concurrency import DEADLINE_SECONDS, at_once, in_background, wait_until
from tests.integration.database_state import waiting_for_locks
from tests.integration.jobs.sample_jobs import (
    NOW,
    SECOND,
    Outbox,
    aged,
    alive,
    chained,
    known,
    record,
    stands,
    tasks_refuse,
    write,
)
from tests.integration.redis_state import Clock, Redis, signs_of_life_come

pytestmark = pytest.mark.usefixtures("database", "nodes")

BROKEN = ("Stopped", "a job before it in its chain did not succeed")
LOST = ("Error", "the result of the job before it was lost")
WAITS = ("Pending", "")


def waiting(outbox: Outbox, *jobs: str, takes_result: bool = True) -> Execution:
    """A chain that was recorded a minute ago and whose first job has a message."""
    execution = chained(*jobs, takes_result=takes_result)
    aged(execution)
    outbox.taken()
    return execution


def statuses(redis: Redis) -> dict[str, tuple[str, str]]:
    return {job: (status, message) for job, (status, _, _, message) in known(redis)["tasks"].items()}


@pytest.mark.parametrize("status", ["Error", "Stopped"])
def test_a_chain_whose_end_was_reported_by_another_program_ends(status: str, redis: Redis, outbox: Outbox) -> None:
    waiting(outbox, "a", "b", "c")
    waiting(outbox, "other a", "other b")
    stands("a", status)
    recover_jobs(outbox.publish)
    ends = {"a": (status, ""), "b": BROKEN, "c": BROKEN}
    assert statuses(redis) == ends | {"other a": WAITS, "other b": WAITS}
    assert outbox.taken() == []


def test_a_success_that_was_reported_by_another_program_is_followed_by_what_takes_no_result(
    redis: Redis, outbox: Outbox
) -> None:
    waiting(outbox, "a", "b", takes_result=False)
    stands("a", "Success")
    assert recover_jobs(outbox.publish) == Recovered(sent=1)
    assert outbox.taken() == [("b", 0, 0)]


def test_a_job_whose_argument_was_lost_fails_and_ends_its_chain(redis: Redis, outbox: Outbox) -> None:
    """Its predecessor has succeeded, and neither a job nor a record has the result."""
    waiting(outbox, "a", "b", "c")
    stands("a", "Success")
    recover_jobs(outbox.publish)
    assert statuses(redis) == {"a": ("Success", ""), "b": LOST, "c": BROKEN}
    assert outbox.taken() == []


def test_a_job_whose_predecessor_has_a_record_waits_for_its_argument(redis: Redis, outbox: Outbox) -> None:
    """Somebody has reported its success while it runs."""
    waiting(outbox, "a", "b")
    write(redis, record("a", node="live", acknowledged=(0, "Running")))
    stands("a", "Success")
    recover_jobs(outbox.publish)
    assert statuses(redis)["b"] == WAITS
    deliver_and_publish([JobReport("a", Task.objects.get(job_id="a").pk, 0, "Success", result=7)])
    assert [list(one.args) for one in outbox.messages] == [[7, "b"]]


def test_nothing_is_lost_a_moment_after_redis_was_emptied(redis: Redis, outbox: Outbox, clock: Clock) -> None:
    waiting(outbox, "a", "b")
    stands("a", "Success")
    signs_of_life_come(redis, since=NOW - 10 * SECOND, heard=NOW)
    recover_jobs(outbox.publish)
    assert statuses(redis)["b"] == WAITS
    clock.move(1)
    alive(redis, "live", clock)
    recover_jobs(outbox.publish)
    assert statuses(redis)["b"] == LOST


def test_a_chain_that_the_database_refuses_to_end_keeps_no_other_from_ending(
    redis: Redis, outbox: Outbox, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(5):
        waiting(outbox, f"a{number}", f"b{number}")
        stands(f"a{number}", "Error")
    tasks_refuse(f"OLD.id = {Task.objects.get(job_id='b2').pk}")
    recover_jobs(outbox.publish)
    ended = {job: one for job, one in statuses(redis).items() if job.startswith("b")}
    assert ended == {f"b{number}": WAITS if number == 2 else BROKEN for number in range(5)}
    assert "no more" in caplog.text


def test_when_many_wait_a_pass_looks_at_some_and_the_next_ones_at_the_others(
    redis: Redis, outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    beginnings = count()
    monkeypatch.setattr(chains, "LOOKED_AT", 3)
    monkeypatch.setattr(random, "randrange", lambda _: next(beginnings))
    for number in range(10):
        waiting(outbox, f"a{number}", f"b{number}")
        stands(f"a{number}", "Error")
    recover_jobs(outbox.publish)
    ended = Task.objects.filter(job_id__startswith="b", status="Stopped")
    assert ended.count() == 3
    last = max(Task.objects.values_list("pk", flat=True))
    for _ in range(last):
        recover_jobs(outbox.publish)
    assert ended.count() == 10


def test_a_job_that_was_handed_something_is_published_however_many_wait(
    redis: Redis, outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chains, "LOOKED_AT", 0)
    for number in range(10):
        waiting(outbox, f"a{number}", f"b{number}")
    outbox.is_away = True
    deliver_and_publish([JobReport("a7", Task.objects.get(job_id="a7").pk, 0, "Success", result=7)])
    assert recover_jobs(outbox.publish) == Recovered(sent=1)
    assert [(one.job, list(one.args)) for one in outbox.messages] == [("b7", [7, "b7"])]


def test_a_chain_that_is_tried_again_at_this_moment_is_not_ended(redis: Redis, outbox: Outbox) -> None:
    waiting(outbox, "a", "b")
    a = Task.objects.get(job_id="a").pk
    stands("a", "Error")
    is_locked, may_commit = threading.Event(), threading.Event()

    def try_again() -> None:
        with transaction.atomic():
            Task.objects.filter(pk=a).update(status="Pending", status_code=0, status_revision=1, end_time=None)
            is_locked.set()
            assert may_commit.wait(DEADLINE_SECONDS)

    with in_background(try_again) as tried:
        assert is_locked.wait(DEADLINE_SECONDS)
        with in_background(lambda: chains.stop_broken([a])) as stopped:
            wait_until(waiting_for_locks, "the end of the chain to wait")
            may_commit.set()
            stopped()
        tried()
    assert statuses(redis) == {"a": WAITS, "b": WAITS}


def test_a_job_that_is_being_published_at_this_moment_is_not_ended(redis: Redis, outbox: Outbox) -> None:
    waiting(outbox, "a", "b")
    a = Task.objects.get(job_id="a").pk
    stands("a", "Error")
    with transaction.atomic():
        assert Job.objects.select_for_update(of=("self",)).get(task__job_id="b")
        at_once(lambda: chains.stop_broken([a]))
    assert statuses(redis)["b"] == WAITS
    chains.stop_broken([a])
    assert statuses(redis)["b"] == BROKEN


def test_a_job_that_has_a_message_is_not_ended_for_a_later_run_of_its_predecessor(
    redis: Redis, outbox: Outbox
) -> None:
    waiting(outbox, "a", "b", "c")
    a = Task.objects.get(job_id="a").pk
    deliver_and_publish([JobReport("a", a, 0, "Success", result=7)])
    stands("b", "Running")
    report([Report(a, "Error", 1, "why")])
    recover_jobs(outbox.publish)
    assert statuses(redis) == {"a": ("Error", "why"), "b": ("Running", ""), "c": WAITS}


def test_a_chain_that_is_tried_again_goes_on_with_what_its_new_run_returns(redis: Redis, outbox: Outbox) -> None:
    execution = waiting(outbox, "a", "b")
    a = Task.objects.get(job_id="a").pk
    stands("a", "Error")
    deliver_and_publish([JobReport("a", a, 0, "Success", result="too late")])
    recover_jobs(outbox.publish)
    assert statuses(redis) == {"a": ("Error", ""), "b": BROKEN}
    assert retry_failed(execution.pk) == 2
    outbox.taken()
    deliver_and_publish([JobReport("a", a, 1, "Success", result="in time")])
    assert [(one.job, list(one.args)) for one in outbox.messages] == [("b", ["in time", "b"])]


def test_something_is_handed_on_by_a_run_and_to_a_job_that_follows(outbox: Outbox) -> None:
    waiting(outbox, "a", "b")
    first, then = Job.objects.order_by("pk")
    for job, values in (
        (first, {"handed_on_revision": 0}),
        (then, {"handed_on": 1}),
        (then, {"handed_on_revision": -1}),
    ):
        with pytest.raises(IntegrityError, match='"job_handed_on_by_a_run"'), transaction.atomic():
            Job.objects.filter(pk=job.pk).update(**values)


def test_a_task_that_another_job_follows_is_deleted_only_with_it(outbox: Outbox) -> None:
    execution = waiting(outbox, "a", "b")
    with pytest.raises(RestrictedError), transaction.atomic():
        Task.objects.get(job_id="a").delete()
    assert (Task.objects.count(), Job.objects.count()) == (2, 2)
    execution.delete()
    assert (Task.objects.count(), Job.objects.count()) == (0, 0)
