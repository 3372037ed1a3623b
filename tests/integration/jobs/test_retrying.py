"""retry_failed: what failed, and what was stopped for it in a chain, waits for another run in a new revision."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psycopg
import pytest

from harbor_refresh.executions.errors import AlreadyUnderWay, NoSuchExecution, StillRunning
from harbor_refresh.executions.lifecycle.deletion import delete
from harbor_refresh.executions.lifecycle.quarantines import quarantine
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.lifecycle.stops import stop
from harbor_refresh.executions.models import Quarantine, Task
from harbor_refresh.tasks.jobs import TrackedExecution
from harbor_refresh.tasks.jobs.delivery.followers import deliver_and_publish
from harbor_refresh.tasks.jobs.lifecycle.job_creation import NewJob, start
from harbor_refresh.tasks.jobs.lifecycle.job_report import JobReport
from harbor_refresh.tasks.jobs.lifecycle.job_stops import stop_jobs
from harbor_refresh.tasks.jobs.lifecycle.message import Message
from harbor_refresh.tasks.jobs.lifecycle.retries import retry_failed
from harbor_refresh.tasks.jobs.records.records import job_records
from harbor_refresh.tasks.jobs.records.run import Run, Verdict
from harbor_refresh.tasks.jobs.repair.job_recovery import Recovered, recover_jobs
from harbor_refresh.tasks.models import Job
from tests import servers
from tests.integration.concurrency import (
    Pause,
    at_once,
    in_background,
    transaction_held_open,
    wait_until,
)
from tests.integration.database_state import deadlocks_so_far, waiting_for_locks
from tests.integration.jobs.sample_jobs import NOW, Outbox, aged, begun, chained, recorded, stands, state, write
from tests.integration.jobs.sample_jobs import known as all_known
from tests.integration.jobs.sample_jobs import record as record_of
from tests.integration.redis_state import PREFIX, Clock, Redis
from tests.integration.sample_executions import fails_with

pytestmark = pytest.mark.usefixtures("database", "clock")

TRIED = "tried again"


def test_what_failed_waits_in_a_new_revision_with_one_message(redis: Redis, outbox: Outbox) -> None:
    execution, _ = recorded("failed", "done", "stopped", "runs"), recorded("of another")
    outbox.taken()
    for job, status, revision, runs in [
        ("failed", "Error", 2, 2),
        ("done", "Success", 0, 0),
        ("stopped", "Stopped", 0, 0),
        ("runs", "Running", 1, 1),
        ("of another", "Error", 0, 0),
    ]:
        stands(job, status, revision, runs)
    before = all_known(redis)["tasks"]

    assert retry_failed(execution.pk) == 1
    assert all_known(redis) == state(before | {"failed": ("Pending", 3, 3, TRIED)})
    assert outbox.taken() == [("failed", 3, 3)]
    assert retry_failed(execution.pk) == 0
    assert outbox.taken() == []


def test_a_copy_of_its_first_message_runs_it_in_the_revision_it_is_tried_again_in(outbox: Outbox) -> None:
    execution = recorded("j", max_attempts=1)
    (first,) = outbox.messages
    stands("j", "Error")
    outbox.taken()
    retry_failed(execution.pk)
    (second,) = outbox.messages
    verdict, run = begun(first)
    assert (verdict, run.revision, run.runs) == (Verdict.GO, 1, 2)
    assert begun(second)[0] == Verdict.ALIVE


def runs_until_it_is_exhausted(message: Message) -> tuple[int, Run]:
    """A message that each time ends in another try: how often it began, and the run that did not."""
    for count in range(99):
        verdict, run = begun(message)
        if verdict != Verdict.GO:
            assert verdict == Verdict.EXHAUSTED
            return count, run
        revision = job_records().settle(run, "Scheduled", "OSError")
        assert revision == run.revision + 1
        deliver_and_publish([JobReport(message.job, message.task_id, revision, "Scheduled", "OSError")])
    raise AssertionError("it is never exhausted")


def test_it_has_all_its_attempts_again_and_no_more_each_time_it_is_tried_again(
    redis: Redis, outbox: Outbox
) -> None:
    execution = recorded("j", max_attempts=3)
    for _ in range(3):
        (message,) = outbox.messages
        outbox.taken()
        count, run = runs_until_it_is_exhausted(message)
        assert count == 3
        why = job_records().of(["j"])["j"].message
        assert why.endswith("times, which is as often as it may: see max_attempts")
        deliver_and_publish([JobReport("j", message.task_id, run.revision, "Error", why)])
        assert all_known(redis)["tasks"] == {"j": ("Error", run.revision, run.revision, why)}
        assert all_known(redis)["records"] == {}
        assert retry_failed(execution.pk) == 1


def test_an_end_that_is_not_acknowledged_yet_swallows_no_new_message(redis: Redis, outbox: Outbox) -> None:
    """Its worker died after the commit. Recovery then finds a run that is going on, and leaves it."""
    execution = recorded("j")
    outbox.taken()
    stands("j", "Error")
    write(redis, record_of("j", "Error", node="gone", ago=60, acknowledged=(0, "Running")))
    redis.zadd("cache:execution:refresh:nodes", {"n": NOW})
    assert retry_failed(execution.pk) == 1
    verdict, run = begun(outbox.messages[0])
    assert (verdict, run) == (Verdict.GO, Run("j", execution.tasks.get().pk, "n", 1, 2))
    outbox.taken()
    assert recover_jobs(outbox.publish) == Recovered()
    runs = record_of("j", revision=1, node="n", runs=2)
    assert all_known(redis) == state({"j": ("Pending", 1, 1, TRIED)}, [runs])


def test_an_end_that_is_acknowledged_late_ends_no_run_that_came_after_it(redis: Redis, outbox: Outbox) -> None:
    execution = recorded("j")
    stands("j", "Error")
    write(redis, record_of("j", "Error", node="gone", ago=60))
    outbox.taken()
    retry_failed(execution.pk)
    assert recover_jobs(outbox.publish) == Recovered(landed=1), "the end of the run before"
    assert all_known(redis) == state({"j": ("Pending", 1, 1, TRIED)})
    verdict, run = begun(outbox.messages[0])
    assert (verdict, run.revision, run.runs) == (Verdict.GO, 1, 2)
    assert len(outbox.taken()) == 1


def test_a_stop_before_it_is_no_stop_of_it(redis: Redis, outbox: Outbox) -> None:
    execution = recorded("failed", "stopped")
    first = {message.job: message for message in outbox.messages}
    outbox.taken()
    stop_jobs(execution.pk)
    stands("failed", "Error", 0, 0)
    assert retry_failed(execution.pk) == 1
    assert begun(outbox.messages[0])[0] == Verdict.GO
    assert begun(first["stopped"])[0] == Verdict.OVER


def test_the_rest_of_its_chain_waits_for_its_turn_again(redis: Redis, outbox: Outbox) -> None:
    execution = chained("a", "b", "c", "d")
    a = execution.tasks.get(job_id="a").pk
    b = execution.tasks.get(job_id="b").pk
    deliver_and_publish([JobReport("a", a, 0, "Success", result=1)])
    deliver_and_publish([JobReport("b", b, 0, "Error", "ValueError: no")])
    outbox.taken()
    assert retry_failed(execution.pk) == 3
    waits = dict.fromkeys("bcd", ("Pending", 1, 1, TRIED))
    assert all_known(redis) == state({"a": ("Success", 0, 0, "")} | waits, unpublished=["c", "d"])
    assert outbox.taken() == [("b", 1, 1)]
    assert recover_jobs(outbox.publish) == Recovered()
    deliver_and_publish([JobReport("b", b, 1, "Success", result=2)])
    assert outbox.taken() == [("c", 1, 1)]
    args = [job.arguments for job in Job.objects.order_by("pk")]
    assert args == [["a"], [1, "b"], [2, "c"], ["d"]]


def test_what_was_stopped_behind_something_that_did_not_fail_is_left(redis: Redis, outbox: Outbox) -> None:
    execution = chained("a", "b")
    stop(execution.pk)
    before = all_known(redis)
    assert retry_failed(execution.pk) == 0
    assert all_known(redis) == before


def ended(*jobs: str) -> TrackedExecution:
    """An execution whose jobs have failed, refreshed."""
    execution = recorded(*jobs)
    for job in jobs:
        stands(job, "Error")
    refresh([execution.pk])
    return TrackedExecution.objects.get(pk=execution.pk)


def changes(execution: TrackedExecution) -> list[tuple[str, str]]:
    return list(execution.history.order_by("revision").values_list("from_status", "to_status"))


def test_its_execution_runs_when_it_returns_and_is_waited_for_again() -> None:
    execution = ended("j")
    assert execution.wait(timeout=1) == "Error"
    assert execution.retry_failed() == 1
    assert (execution.status, execution.end_time) == ("Running", None)
    with pytest.raises(StillRunning):
        execution.wait(timeout=0.01)
    assert changes(execution) == [("Running", "Error"), ("Error", "Running")]


def test_an_execution_in_quarantine_is_released_and_runs_again() -> None:
    execution = ended("j")
    quarantine([execution.pk], 5, {execution.pk: "why"})
    assert execution.retry_failed() == 1
    assert (execution.status, Quarantine.objects.exists()) == ("Running", False)


def test_an_execution_in_quarantine_without_anything_to_try_again_stays_there() -> None:
    execution = ended("j")
    stands("j", "Success")
    quarantine([execution.pk], 5, {execution.pk: "why"})
    assert execution.retry_failed() == 0
    assert Quarantine.objects.exists()


def test_an_execution_without_anything_to_try_again_stays_as_it_is() -> None:
    execution = ended("j")
    stands("j", "Success")
    assert execution.retry_failed() == 0
    assert execution.status == "Error", "another refresh will see to it"


def test_another_try_of_an_execution_that_is_gone_is_refused() -> None:
    execution = ended("j")
    delete([execution.pk])
    with pytest.raises(NoSuchExecution):
        execution.retry_failed()


def test_an_execution_that_cannot_be_refreshed_is_tried_again_and_marked(redis: Redis, outbox: Outbox) -> None:
    execution = ended("j")
    outbox.taken()
    redis.delete(f"{PREFIX}queue:v2")
    fails_with("P0001", execution)
    assert execution.retry_failed() == 1
    assert all_known(redis)["tasks"] == {"j": ("Pending", 1, 1, TRIED)}
    assert execution.status == "Error"
    assert outbox.taken() == [("j", 1, 1)]
    assert redis.smembers(f"{PREFIX}queue:v2") == {f"{execution.pk}:SCAN".encode()}


def test_of_two_retries_at_once_one_tries_each_job_again(redis: Redis, outbox: Outbox) -> None:
    execution = ended("a", "b")
    outbox.taken()
    with Pause("deciding") as pause, in_background(lambda: retry_failed(execution.pk)) as first:
        pause.wait_until_reached()
        with in_background(lambda: retry_failed(execution.pk)) as second:
            wait_until(lambda: waiting_for_locks() == 1, "the second waits for the first")
            pause.go_on.set()
            assert (first(), second()) == (2, 0)
    assert all_known(redis)["tasks"] == dict.fromkeys("ab", ("Pending", 1, 1, TRIED))
    assert outbox.taken() == [("a", 1, 1), ("b", 1, 1)]


def test_a_job_that_runs_again_by_a_report_meanwhile_is_not_tried_again(database: str, outbox: Outbox) -> None:
    """What is tried again is decided under the locks of the tasks: neither it, nor what was stopped behind it."""
    execution = chained("a", "b", takes_result=False)
    a = execution.tasks.earliest("pk").pk
    deliver_and_publish([JobReport("a", a, 0, "Error")])
    outbox.taken()
    runs = "status = 'Running', status_code = 2, status_revision = 1, end_time = NULL"
    with psycopg.connect(servers.postgres.url_for(database)) as other:
        other.execute(f"UPDATE task SET {runs} WHERE id = %s", [a])
        with in_background(lambda: retry_failed(execution.pk)) as again:
            wait_until(lambda: waiting_for_locks() == 1, "it waits for the task")
            other.commit()
            assert again() == 0
    assert [(task.status, task.status_revision) for task in execution.tasks.order_by("pk")] == [
        ("Running", 1),
        ("Stopped", 0),
    ]
    assert outbox.taken() == []


def test_another_try_that_waits_for_a_stop_leaves_what_was_stopped(outbox: Outbox) -> None:
    execution = ended("failed", "waits")
    stands("waits", "Pending")
    outbox.taken()
    assert after(lambda: stop_jobs(execution.pk), lambda: retry_failed(execution.pk)) == 1
    assert dict(Task.objects.values_list("job_id", "status")) == {"failed": "Pending", "waits": "Stopped"}
    assert outbox.taken() == [("failed", 1, 1)]


def test_another_try_that_waits_for_a_delete_is_refused(outbox: Outbox) -> None:
    execution = ended("failed")
    outbox.taken()
    with pytest.raises(NoSuchExecution):
        after(lambda: delete([execution.pk]), lambda: retry_failed(execution.pk))
    assert outbox.taken() == []


def after(first: Callable[[], Any], second: Callable[[], Any]) -> Any:
    """What the second returns, which waits for the first: that has its work done and not committed."""
    with transaction_held_open(first) as commit, in_background(second) as finish:
        wait_until(lambda: waiting_for_locks() == 1, "the second waits for the first")
        commit()
        return finish()


def test_stops_deletes_and_retries_of_the_same_executions_at_once_never_deadlock(outbox: Outbox) -> None:
    executions = [recorded(*(f"{name}{number}" for number in range(30))) for name in "abc"]
    ids = [one.pk for one in executions]
    deadlocks = deadlocks_so_far()

    def fail_again_and_again() -> None:
        for _ in range(10):
            tasks = list(Task.objects.filter(status_code__lt=3).order_by("-pk"))
            report([Report(task.pk, "Error", task.status_revision) for task in tasks])

    def retry_again_and_again() -> None:
        for _ in range(10):
            for pk in reversed(ids):
                with suppress(NoSuchExecution):
                    retry_failed(pk)

    def stop_again_and_again() -> None:
        for _ in range(10):
            for pk in ids:
                with suppress(NoSuchExecution):
                    stop_jobs(pk)

    at_once(
        fail_again_and_again,
        fail_again_and_again,
        retry_again_and_again,
        retry_again_and_again,
        stop_again_and_again,
        stop_again_and_again,
    )
    assert deadlocks_so_far() == deadlocks
    at_once(retry_again_and_again, stop_again_and_again, lambda: delete(ids), lambda: delete(reversed(ids)))
    assert deadlocks_so_far() == deadlocks
    assert not Task.objects.exists()


def test_who_dies_before_the_message_is_out_leaves_it_to_recovery(
    redis: Redis, outbox: Outbox, clock: Clock
) -> None:
    execution = recorded("j")
    outbox.taken()
    stands("j", "Error")
    outbox.is_away = True
    assert retry_failed(execution.pk) == 1
    aged(execution)
    assert all_known(redis) == state({"j": ("Pending", 1, 1, TRIED)}, unpublished=["j"])
    assert [recover_jobs(outbox.publish) for _ in range(2)] == [Recovered(sent=1), Recovered()]
    assert outbox.taken() == [("j", 1, 1)]


def test_a_unique_job_is_not_tried_again_beside_another_and_takes_its_key_again(outbox: Outbox) -> None:
    def unique() -> list[NewJob]:
        return [NewJob("a.job", ["x"], is_unique=True), NewJob("b.job")]

    first = start("SCAN", [unique()]).execution
    deliver_and_publish([JobReport(one.job_id, one.pk, 0, "Error") for one in first.tasks.order_by("pk")[:1]])
    second = start("SCAN", [unique()]).execution
    assert retry_failed(first.pk) == 0
    deliver_and_publish([JobReport(one.job_id, one.pk, 0, "Error") for one in second.tasks.order_by("pk")[:1]])
    assert retry_failed(first.pk) == 2
    with pytest.raises(AlreadyUnderWay):
        start("SCAN", [unique()])
    assert retry_failed(second.pk) == 0
