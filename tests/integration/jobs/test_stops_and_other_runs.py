"""stop_jobs, retry_failed, resume_stopped: the end of a task ends its job, with the commit and not before. What
has failed or was stopped waits for another run in a new revision."""

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psycopg
import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from harbor_refresh.executions.errors import NoSuchExecution
from harbor_refresh.executions.lifecycle.quarantines import quarantine
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.models import Execution, Quarantine, Task
from harbor_refresh.executions.status import Status
from harbor_refresh.tasks.jobs import TrackedExecution, sender
from harbor_refresh.tasks.jobs.again import resume_stopped, retry_failed
from harbor_refresh.tasks.jobs.outcomes import Begun, Outcome, take
from harbor_refresh.tasks.jobs.starting.declarations import NewJob, NewNeed
from harbor_refresh.tasks.jobs.stops import stop_job_of, stop_jobs
from harbor_refresh.tasks.models.job import JobInput
from tests import servers
from tests.integration.concurrency import Pause, at_once, in_background, transaction_held_open, wait_until
from tests.integration.database_state import deadlocks_so_far, waiting_for_locks
from tests.integration.jobs.sample_jobs import (
    Outbox,
    Sent,
    beats,
    begun,
    chained,
    ends,
    failed,
    in_a_row,
    recorded,
    rows,
    stands,
    tasks,
)
from tests.integration.redis_state import PREFIX, Redis
from tests.integration.sample_executions import delete, fails_with
from tests.started import start

pytestmark = pytest.mark.usefixtures("database")

TRIED = "tried again"
#: Of each end, what runs such jobs again, and what it says.
AGAIN: dict[str, tuple[Callable[[int], int], str]] = {
    "Error": (retry_failed, TRIED),
    "Stopped": (resume_stopped, "resumed"),
}
of_each_end = pytest.mark.parametrize("status", AGAIN)
STOP: list[Callable[[int], int]] = [stop_jobs, lambda pk: delete([pk])]


@pytest.fixture(autouse=True)
def worker(database: str) -> None:
    beats()


def run_of(message: Sent) -> Begun:
    found = begun(message)
    assert found
    return found


def chain_that_ends(status: str, outbox: Outbox) -> Execution:
    """The first job of the chain has succeeded; the second has failed, or waits and was stopped."""
    execution = chained("a", "b", "c")
    take([Outcome(run_of(*outbox.take()).run, Status.SUCCESS, result="1")])
    sender.send_all()
    (second,) = outbox.take()
    if status == "Error":
        take([Outcome(run_of(second).run, Status.ERROR, "ValueError: no")])
    else:
        stop_jobs(execution.pk)
    return execution


# stops


def test_a_job_that_is_stopped_alone_stops_those_behind_it_in_its_chain(outbox: Outbox) -> None:
    execution = chained("a", "b", "c")
    assert stop_job_of(execution.tasks.get(job_id="b").pk)
    assert {name: state for name, (state, _) in rows().items()} == {"a": "sent", "b": "ended", "c": "ended"}
    assert tasks()["c"][0] == "Stopped"
    assert not stop_job_of(execution.tasks.get(job_id="b").pk)


# another run


@of_each_end
def test_what_has_ended_so_waits_in_a_new_revision_with_one_message(status: str, outbox: Outbox) -> None:
    (other,) = AGAIN.keys() - {status}
    execution, _ = recorded("again", "done", "other", "runs"), recorded("of another")
    outbox.take()
    for name, its, revision, runs in [
        ("again", status, 2, 2),
        ("done", "Success", 0, 0),
        ("other", other, 0, 0),
        ("runs", "Running", 1, 1),
        ("of another", status, 0, 0),
    ]:
        stands(name, its, revision, runs)
    before = tasks()
    again, why = AGAIN[status]
    assert again(execution.pk) == 1
    assert tasks() == before | {"again": ("Pending", 3, 3, why)}
    assert outbox.taken() == [("again", 0)]
    assert again(execution.pk) == 0
    assert outbox.take() == []


def test_a_retry_reads_no_arguments_and_no_results_and_costs_as_many_statements_for_forty_as_for_one(
    outbox: Outbox,
) -> None:
    costs = []
    for count in (1, 40):
        execution = recorded(*(f"job {number} of {count}" for number in range(count)), args=["large"])
        ends(execution, "Error")
        with CaptureQueriesContext(connection) as captured:
            assert retry_failed(execution.pk) == count
        costs.append(len(captured))
        large = [f'"execution_job"."{column}"' for column in ("args", "kwargs", "options", "result")]
        assert [one["sql"] for one in captured if any(column in one["sql"] for column in large)] == []
    assert costs[0] == costs[1]


def test_it_has_all_its_attempts_again_and_no_more_each_time_it_is_tried_again(outbox: Outbox) -> None:
    execution = recorded("j", max_attempts=3)
    for _ in range(3):
        for left in (2, 1, 0):
            run = run_of(*outbox.take())
            assert run.may_begin - run.run.number == left
            take([Outcome(run.run, Status.SCHEDULED if left else Status.ERROR, "OSError")])
            sender.send_all()
        assert tasks()["j"][0] == "Error"
        assert retry_failed(execution.pk) == 1
    assert rows() == {"j": ("sent", 9)}


@of_each_end
def test_the_rest_of_its_chain_waits_for_its_turn_again(status: str, outbox: Outbox) -> None:
    execution = chain_that_ends(status, outbox)
    again, why = AGAIN[status]
    assert again(execution.pk) == 2
    waits = ("Pending", why)
    assert {name: one[::3] for name, one in tasks().items()} == {"a": ("Success", ""), "b": waits, "c": waits}
    assert {name: state for name, (state, _) in rows().items()} == {"a": "ended", "b": "sent", "c": "waiting"}
    run = run_of(*outbox.take())
    assert (run.run.job, run.args) == ("b", [1, "b"])


def test_what_was_stopped_behind_a_failure_is_left_to_a_retry(outbox: Outbox) -> None:
    execution = chain_that_ends("Error", outbox)
    before = tasks()
    assert before["c"][0] == "Stopped"
    assert resume_stopped(execution.pk) == 0
    assert tasks() == before
    assert retry_failed(execution.pk) == 2


def test_a_job_that_was_stopped_alone_waits_for_the_job_before_it(outbox: Outbox) -> None:
    execution = chained("a", "b", takes=JobInput.NOTHING)
    run = run_of(*outbox.take())
    assert stop_job_of(execution.tasks.get(job_id="b").pk)
    assert resume_stopped(execution.pk) == 1
    assert (outbox.take(), rows()["b"]) == ([], ("waiting", 0))
    take([Outcome(run.run, Status.ERROR, "no")])
    assert tasks()["b"][0] == "Stopped"


@of_each_end
def test_quarantine_ends_if_there_is_something_to_run_again_and_not_otherwise(status: str, outbox: Outbox) -> None:
    some, none = recorded("a"), recorded("b")
    ends(some, status)
    ends(none)
    quarantine([some.pk, none.pk], 5)
    again, _ = AGAIN[status]
    assert (again(some.pk), again(none.pk)) == (1, 0)
    assert list(Quarantine.objects.values_list("pk", flat=True)) == [none.pk]


def ended(*jobs: str) -> TrackedExecution:
    """An execution whose jobs have failed, refreshed."""
    execution = recorded(*jobs)
    for job in jobs:
        stands(job, "Error")
    refresh([execution.pk])
    return TrackedExecution.objects.get(pk=execution.pk)


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


@of_each_end
def test_of_two_at_once_one_runs_each_job_again(status: str, outbox: Outbox) -> None:
    execution = recorded("a", "b")
    outbox.take()
    ends(execution, status)
    again, why = AGAIN[status]
    with Pause("deciding") as pause, in_background(lambda: again(execution.pk)) as first:
        pause.wait_until_reached()
        with in_background(lambda: again(execution.pk)) as second:
            wait_until(lambda: waiting_for_locks() == 1, "the second waits for the first")
            pause.go_on.set()
            assert (first(), second()) == (2, 0)
    assert tasks() == dict.fromkeys("ab", ("Pending", 1, 1, why))
    assert outbox.taken() == [("a", 0), ("b", 0)]


def test_a_job_that_runs_again_by_a_report_meanwhile_is_not_tried_again(database: str, outbox: Outbox) -> None:
    """What is tried again is decided under the locks of the tasks: neither it, nor what was stopped behind it."""
    execution = chained("a", "b", takes=JobInput.NOTHING)
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


@pytest.mark.parametrize(("status", "takes"), [("Error", JobInput.NOTHING), ("Success", JobInput.LIST)])
def test_another_try_that_waits_for_the_end_of_another_need_leaves_the_job_that_cannot_run(
    status: str, takes: JobInput, outbox: Outbox
) -> None:
    """Another program reports the end: that it has failed, or has succeeded and left no result."""
    both = NewJob("a.job", job_id="c", needs=[NewNeed(0), NewNeed(1)], takes=takes)
    execution = start("SCAN", [[NewJob("a.job", job_id="a"), NewJob("a.job", job_id="b"), both]])
    failed(execution, "a")
    b = execution.tasks.get(job_id="b").pk
    outbox.take()
    assert after(lambda: report([Report(b, status)]), lambda: retry_failed(execution.pk)) == 1
    assert {name: one[0] for name, one in tasks().items()} == {"a": "Pending", "b": status, "c": "Stopped"}
    assert outbox.taken() == [("a", 0)]


def after(first: Callable[[], Any], second: Callable[[], Any]) -> Any:
    """What the second returns, which waits for the first: that has its work done and not committed."""
    with transaction_held_open(first) as commit, in_background(second) as finish:
        wait_until(lambda: waiting_for_locks() == 1, "the second waits for the first")
        commit()
        return finish()


ANOTHER_END: dict[str, Callable[[int], Any]] = {
    "stopped": stop_job_of,
    "reported": lambda pk: report([Report(pk, "Error")]),
}


@pytest.mark.parametrize("before", [False, True], ids=["", "and the job before the other ends"])
@pytest.mark.parametrize("other", ANOTHER_END)
def test_the_end_of_one_need_and_the_failing_run_of_another_never_deadlock(
    other: str, before: bool, outbox: Outbox
) -> None:
    """The run has locked its task and the one behind it when the other need ends. Then it locks their jobs."""
    chain = in_a_row(NewJob("a.job", job_id="x"), NewJob("a.job", job_id="b"), takes=JobInput.NOTHING)
    both = NewJob("a.job", job_id="c", needs=[NewNeed(1), NewNeed(2)])
    execution = start("SCAN", [[*chain, NewJob("a.job", job_id="a"), both]])
    x, a = (run_of(one).run for one in outbox.take())
    b, c = execution.tasks.filter(job_id__in="bc").order_by("pk").values_list("pk", flat=True)
    deadlocks = deadlocks_so_far()
    locked, go_on = threading.Event(), threading.Event()

    def fail() -> None:
        with transaction.atomic():
            its_tasks = Task.objects.filter(pk__in=[x.task_id, a.task_id, c]).order_by("pk")
            assert len(its_tasks.select_for_update(no_key=True)) == 3
            locked.set()
            assert go_on.wait(60)
            take([Outcome(a, Status.ERROR), *([Outcome(x, Status.SUCCESS)] if before else [])])

    with in_background(fail) as failed_too:
        assert locked.wait(60)
        with in_background(lambda: ANOTHER_END[other](b)) as ended_too:
            wait_until(lambda: waiting_for_locks() == 1, "the other waits for the run")
            go_on.set()
            failed_too()
            ended_too()
    assert deadlocks_so_far() == deadlocks
    assert {name: tasks()[name][0] for name in "abc"} == {
        "a": "Error",
        "b": "Stopped" if other == "stopped" else "Error",
        "c": "Stopped",
    }


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
