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
from harbor_refresh.executions.models import Execution, Quarantine, Task
from harbor_refresh.executions.status import Status
from harbor_refresh.tasks.jobs import TrackedExecution, sender
from harbor_refresh.tasks.jobs.again import retry_failed
from harbor_refresh.tasks.jobs.running.eager import Sent
from harbor_refresh.tasks.jobs.starting.records import NewJob, start
from harbor_refresh.tasks.jobs.stops import stop_jobs
from harbor_refresh.tasks.jobs.turns import Begun, Turn, take
from tests import servers
from tests.integration.concurrency import (
    Pause,
    at_once,
    in_background,
    transaction_held_open,
    wait_until,
)
from tests.integration.database_state import deadlocks_so_far, waiting_for_locks
from tests.integration.jobs.sample_jobs import (
    Outbox,
    beats,
    begun,
    chained,
    failed,
    nothing_has_begun_for,
    recorded,
    rows,
    sent_before,
    stands,
    tasks,
)
from tests.integration.redis_state import PREFIX, Redis
from tests.integration.sample_executions import fails_with

pytestmark = pytest.mark.usefixtures("database")

TRIED = "tried again"


@pytest.fixture(autouse=True)
def worker(database: str) -> None:
    beats()


def run_of(message: Sent) -> Begun:
    found = begun(message)
    assert found
    return found


def test_what_failed_waits_in_a_new_revision_with_one_message(outbox: Outbox) -> None:
    execution, _ = recorded("failed", "done", "stopped", "runs"), recorded("of another")
    outbox.take()
    for name, status, revision, runs in [
        ("failed", "Error", 2, 2),
        ("done", "Success", 0, 0),
        ("stopped", "Stopped", 0, 0),
        ("runs", "Running", 1, 1),
        ("of another", "Error", 0, 0),
    ]:
        stands(name, status, revision, runs)
    before = tasks()

    assert retry_failed(execution.pk) == 1
    assert tasks() == before | {"failed": ("Pending", 3, 3, TRIED)}
    assert outbox.taken() == [("failed", 0)]
    assert retry_failed(execution.pk) == 0
    assert outbox.take() == []


def test_it_has_all_its_attempts_again_and_no_more_each_time_it_is_tried_again(outbox: Outbox) -> None:
    execution = recorded("j", max_attempts=3)
    for _ in range(3):
        for left in (2, 1, 0):
            run = run_of(*outbox.take())
            assert run.may_begin - run.run.number == left
            take([Turn(run.run, Status.SCHEDULED if left else Status.ERROR, "OSError")])
            sender.send_all()
        assert tasks()["j"][0] == "Error"
        assert retry_failed(execution.pk) == 1
    assert rows() == {"j": ("sent", 9)}


def test_the_end_of_a_run_that_comes_late_ends_no_run_that_came_after_it(outbox: Outbox) -> None:
    execution = recorded("j")
    old = run_of(*outbox.take())
    failed(execution, "j")
    retry_failed(execution.pk)
    assert take([Turn(old.run, Status.ERROR, "late")]) == []
    new = run_of(*outbox.take())
    assert take([Turn(old.run, Status.SUCCESS)]) == []
    assert (new.run.revision, new.run.number) == (1, 2)
    assert (tasks(), rows()) == ({"j": ("Pending", 1, 1, TRIED)}, {"j": ("running", 2)})


def test_a_stop_before_it_is_no_stop_of_it(outbox: Outbox) -> None:
    execution = recorded("failed", "stopped")
    first = {message.job: message for message in outbox.take()}
    failed(execution, "failed")
    stop_jobs(execution.pk)
    assert retry_failed(execution.pk) == 1
    assert begun(*outbox.take())
    assert begun(first["stopped"]) is None


def test_the_rest_of_its_chain_waits_for_its_turn_again(outbox: Outbox) -> None:
    execution = chained("a", "b", "c", "d")
    take([Turn(run_of(*outbox.take()).run, Status.SUCCESS, result="1")])
    sender.send_all()
    take([Turn(run_of(*outbox.take()).run, Status.ERROR, "ValueError: no")])
    assert retry_failed(execution.pk) == 3
    assert {name: one[::3] for name, one in tasks().items()} == {
        "a": ("Success", ""),
        **dict.fromkeys("bcd", ("Pending", TRIED)),
    }
    assert {name: state for name, (state, _) in rows().items()} == {
        "a": "ended",
        "b": "sent",
        "c": "waiting",
        "d": "waiting",
    }
    again = run_of(*outbox.take())
    assert again.args == [1, "b"]
    take([Turn(again.run, Status.SUCCESS, result="2")])
    sender.send_all()
    assert run_of(*outbox.take()).args == [2, "c"]


def test_what_was_stopped_behind_something_that_did_not_fail_is_left(outbox: Outbox) -> None:
    execution = chained("a", "b")
    stop(execution.pk)
    before = tasks(), rows()
    assert retry_failed(execution.pk) == 0
    assert (tasks(), rows()) == before


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
    outbox.take()
    redis.delete(f"{PREFIX}queue:v2")
    fails_with("P0001", execution)
    assert execution.retry_failed() == 1
    assert tasks() == {"j": ("Pending", 1, 1, TRIED)}
    assert execution.status == "Error"
    assert outbox.taken() == [("j", 0)]
    assert redis.smembers(f"{PREFIX}queue:v2") == {f"{execution.pk}:SCAN".encode()}


def test_of_two_retries_at_once_one_tries_each_job_again(outbox: Outbox) -> None:
    execution = ended("a", "b")
    outbox.take()
    with Pause("deciding") as pause, in_background(lambda: retry_failed(execution.pk)) as first:
        pause.wait_until_reached()
        with in_background(lambda: retry_failed(execution.pk)) as second:
            wait_until(lambda: waiting_for_locks() == 1, "the second waits for the first")
            pause.go_on.set()
            assert (first(), second()) == (2, 0)
    assert tasks() == dict.fromkeys("ab", ("Pending", 1, 1, TRIED))
    assert outbox.taken() == [("a", 0), ("b", 0)]


def test_a_job_that_runs_again_by_a_report_meanwhile_is_not_tried_again(database: str, outbox: Outbox) -> None:
    """What is tried again is decided under the locks of the tasks: neither it, nor what was stopped behind it."""
    execution = chained("a", "b", takes_result=False)
    a = execution.tasks.earliest("pk").pk
    report([Report(a, "Error")])
    outbox.take()
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
    assert outbox.take() == []


def test_another_try_that_waits_for_a_stop_leaves_what_was_stopped(outbox: Outbox) -> None:
    execution = ended("failed", "waits")
    stands("waits", "Pending")
    outbox.take()
    assert after(lambda: stop_jobs(execution.pk), lambda: retry_failed(execution.pk)) == 1
    assert dict(Task.objects.values_list("job_id", "status")) == {"failed": "Pending", "waits": "Stopped"}
    assert outbox.taken() == [("failed", 0)]


def test_another_try_that_waits_for_a_delete_is_refused(outbox: Outbox) -> None:
    execution = ended("failed")
    outbox.take()
    with pytest.raises(NoSuchExecution):
        after(lambda: delete([execution.pk]), lambda: retry_failed(execution.pk))
    assert outbox.take() == []


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


def test_after_a_death_before_the_message_is_out_it_is_sent_when_it_is_overdue(outbox: Outbox) -> None:
    execution = recorded("j")
    outbox.take()
    failed(execution, "j")
    outbox.is_away = True
    assert retry_failed(execution.pk) == 1
    outbox.is_away = False
    nothing_has_begun_for(sender.PATIENCE_SECONDS + 1)
    sent_before(sender.PATIENCE_SECONDS + 1, "j")
    for _ in range(2):
        sender.send_all()
    assert outbox.taken() == [("j", 0)]


def test_a_unique_job_is_not_tried_again_beside_another_and_takes_its_key_again(outbox: Outbox) -> None:
    def unique() -> list[NewJob]:
        return [NewJob("a.job", ["x"], is_unique=True), NewJob("b.job")]

    def fails(execution: Execution) -> None:
        failed(execution, str(execution.tasks.earliest("pk").job_id))

    first = start("SCAN", [unique()]).execution
    fails(first)
    second = start("SCAN", [unique()]).execution
    assert retry_failed(first.pk) == 0
    fails(second)
    assert retry_failed(first.pk) == 2
    with pytest.raises(AlreadyUnderWay):
        start("SCAN", [unique()])
    assert retry_failed(second.pk) == 0
