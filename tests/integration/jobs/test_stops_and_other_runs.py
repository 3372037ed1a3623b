"""stop_jobs, retry_failed, resume_stopped: the end of a task ends its job, with the commit and not before. What
has failed or was stopped waits for another run in a new revision."""

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from harbor_refresh.celery import app
from harbor_refresh.executions.api.access import Scope
from harbor_refresh.executions.errors import Refused, StillRunning
from harbor_refresh.executions.lifecycle.quarantines import quarantine
from harbor_refresh.executions.lifecycle.reports import Report, Source, report
from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.models import Execution, Quarantine, Task
from harbor_refresh.executions.status import MAX_REVISION, Status
from harbor_refresh.tasks.jobs import Handle, TrackedExecution, TrackedJob
from harbor_refresh.tasks.jobs import start as start_signatures
from harbor_refresh.tasks.jobs.again import resume_stopped, retry_failed, run_job_again
from harbor_refresh.tasks.jobs.outcomes import Outcome, take
from harbor_refresh.tasks.jobs.running.handle import Begun
from harbor_refresh.tasks.jobs.starting.declarations import NewJob, NewNeed
from harbor_refresh.tasks.jobs.stops import stop_job_of, stop_jobs
from harbor_refresh.tasks.models import Job
from harbor_refresh.tasks.models.job import JobInput
from tests.integration.command_output import misuse, said
from tests.integration.concurrency import (
    Pause,
    in_background,
    one_after_the_other,
    statement_held_open,
    wait_until,
)
from tests.integration.database_state import deadlocks_so_far, waiting_for_locks
from tests.integration.executions.api.api_client import Program, token
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
    send_all,
    stands,
    statuses,
    tasks,
)
from tests.integration.redis_state import PREFIX, Redis
from tests.integration.sample_executions import fails_with
from tests.started import start

pytestmark = pytest.mark.usefixtures("database", "outbox")

TRIED = "tried again"
#: Of each end, what runs such jobs again, and what it says.
AGAIN: dict[str, tuple[Callable[[int], int], str]] = {
    "Error": (retry_failed, TRIED),
    "Stopped": (resume_stopped, "resumed"),
}
of_each_end = pytest.mark.parametrize("status", AGAIN)


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
    send_all()
    (second,) = outbox.take()
    if status == "Error":
        take([Outcome(run_of(second).run, Status.ERROR, "ValueError: no")])
    else:
        stop_jobs(execution.pk)
    return execution


# stops


def test_a_job_that_is_stopped_alone_stops_those_behind_it_in_its_chain() -> None:
    execution = chained("a", "b", "c")
    assert stop_job_of(execution.tasks.get(job_id="b").pk)
    assert {name: state for name, (state, _) in rows().items()} == {"a": "sent", "b": "ended", "c": "ended"}
    assert tasks()["c"][0] == "Stopped"
    assert not stop_job_of(execution.tasks.get(job_id="b").pk)


# another run


@pytest.mark.parametrize("status", ["Running", "Error"])
def test_a_job_whose_task_has_the_highest_revision_that_a_program_may_report_runs_again(
    status: str, outbox: Outbox
) -> None:
    execution = recorded("j", max_attempts=2)
    (message,) = outbox.take()
    first = run_of(message)
    said = Report(execution.tasks.get().pk, status, MAX_REVISION)
    assert report([said], Source.API).applied == 1
    if status == "Running":
        take([Outcome(first.run, Status.PENDING)])  # its process has died
    else:
        assert retry_failed(execution.pk) == 1
    send_all()
    (message,) = outbox.take()
    take([Outcome(run_of(message).run, Status.SUCCESS)])
    assert (rows()["j"], tasks()["j"][:2]) == (("ended", 2), ("Success", MAX_REVISION + 1))


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


def test_a_retry_reads_no_arguments_and_costs_as_many_statements_for_forty_jobs_as_for_one() -> None:
    costs = []
    for count in (1, 40):
        execution = recorded(*(f"job {number} of {count}" for number in range(count)))
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
            send_all()
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


def with_a_clean_up() -> Execution:
    """Of four jobs, `c` runs when `a` and `b` have ended, whatever their statuses."""
    a, b, d = (NewJob("a.job", job_id=name) for name in "abd")
    needs = [NewNeed(0, even_if_failed=True), NewNeed(1, even_if_failed=True)]
    return start("SCAN", [[a, b, NewJob("a.job", job_id="c", needs=needs, takes=JobInput.LIST)], [d]])


@of_each_end
def test_a_clean_up_whose_turn_has_not_come_waits_for_a_job_that_runs_again(status: str, outbox: Outbox) -> None:
    execution = with_a_clean_up()
    a, b, _ = (run_of(one).run for one in outbox.take())
    take([Outcome(a, Status(status))])
    again, _ = AGAIN[status]
    assert again(execution.pk) == 1
    second = run_of(*outbox.take()).run
    take([Outcome(b, Status.SUCCESS, result='"b"')])
    send_all()
    assert (outbox.take(), rows()["c"]) == ([], ("waiting", 0)), "it would run beside `a`"
    take([Outcome(second, Status.SUCCESS, result='"a"')])
    send_all()
    assert run_of(*outbox.take()).args == [["a", "b"]]


def test_a_retry_locks_a_clean_up_and_the_jobs_that_run_again_in_id_order() -> None:
    execution = with_a_clean_up()
    failed(execution, "a", "d")
    c, d = execution.tasks.filter(job_id__in="cd").order_by("pk").values_list("pk", flat=True)
    with (
        statement_held_open("SELECT FROM execution_job WHERE task_id = %s FOR NO KEY UPDATE", [c]) as other,
        in_background(lambda: retry_failed(execution.pk)) as done,
    ):
        wait_until(lambda: waiting_for_locks() == 1, "it waits for the clean-up")
        try:
            other.execute("SELECT FROM execution_job WHERE task_id = %s FOR NO KEY UPDATE NOWAIT", [d])
        finally:
            other.rollback()
        assert done() == 2


@of_each_end
def test_quarantine_ends_if_there_is_something_to_run_again_and_not_otherwise(status: str) -> None:
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


def test_a_job_that_runs_again_by_a_report_while_a_retry_waits_is_not_tried_again(outbox: Outbox) -> None:
    """Neither is the job that was stopped behind it."""
    execution = chained("a", "b", takes=JobInput.NOTHING)
    a = execution.tasks.get(job_id="a").pk
    failed(execution, "a")
    outbox.take()
    _, again = one_after_the_other(lambda: report([Report(a, "Running", 1)]), lambda: retry_failed(execution.pk))
    assert again == 0
    assert {name: one[:2] for name, one in tasks().items()} == {"a": ("Running", 1), "b": ("Stopped", 0)}
    assert outbox.take() == []


@pytest.mark.parametrize(("status", "takes"), [("Error", JobInput.NOTHING), ("Success", JobInput.LIST)])
def test_another_try_that_waits_for_the_end_of_another_need_leaves_the_job_that_cannot_run(
    status: str, takes: JobInput, outbox: Outbox
) -> None:
    """Another program reports the end: that it has failed, or has succeeded and left no result. What is tried
    again is decided under the locks of the tasks."""
    both = NewJob("a.job", job_id="c", needs=[NewNeed(0), NewNeed(1)], takes=takes)
    execution = start("SCAN", [[NewJob("a.job", job_id="a"), NewJob("a.job", job_id="b"), both]])
    failed(execution, "a")
    b = execution.tasks.get(job_id="b").pk
    outbox.take()
    _, again = one_after_the_other(lambda: report([Report(b, status)]), lambda: retry_failed(execution.pk))
    assert again == 1
    assert {name: one[0] for name, one in tasks().items()} == {"a": "Pending", "b": status, "c": "Stopped"}
    assert outbox.taken() == [("a", 0)]


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


IN_ID_ORDER: dict[str, Callable[[Execution], Any]] = {
    "Error": lambda execution: retry_failed(execution.pk),
    "Stopped": lambda execution: resume_stopped(execution.pk),
    "Pending": lambda execution: stop_jobs(execution.pk),
    "Running": lambda execution: report([Report(one.pk, "Error") for one in execution.tasks.order_by("-pk")]),
}


@pytest.mark.parametrize("status", IN_ID_ORDER)
def test_stops_retries_and_failures_of_the_same_jobs_never_deadlock(status: str) -> None:
    """They lock the tasks in id order: what waits for the first task holds no later one."""
    execution = recorded("a", "b", "c")
    for name in "abc":
        stands(name, status)
    first, *later = execution.tasks.order_by("pk").values_list("pk", flat=True)
    with (
        statement_held_open("SELECT FROM task WHERE id = %s FOR NO KEY UPDATE", [first]) as other,
        in_background(lambda: IN_ID_ORDER[status](execution)) as done,
    ):
        wait_until(lambda: waiting_for_locks() == 1, "it waits for the first task")
        try:
            other.execute("SELECT FROM task WHERE id = ANY(%s) FOR NO KEY UPDATE NOWAIT", [later])
        finally:
            other.rollback()
        done()
    assert status not in {one[0] for one in tasks().values()}


# when they return, their caller sees the new status of the execution


Way = Callable[[TrackedExecution, Task], object]


def tracked() -> tuple[TrackedExecution, Task]:
    execution = TrackedExecution.objects.get(pk=recorded("j").pk)
    return execution, execution.tasks.get()


#: What ends it, and what runs it again. The API, the commands, the admin and actions on many come to these.
AGAIN_BY: dict[str, tuple[str, Way]] = {
    "retry_failed()": ("Error", lambda execution, task: execution.retry_failed()),
    "a retry of the job alone": ("Error", lambda execution, task: run_job_again(task.pk)),
    "resume_stopped()": ("Stopped", lambda execution, task: execution.resume_stopped()),
    "a resumption of the job alone": ("Stopped", lambda execution, task: run_job_again(task.pk)),
}


@pytest.mark.parametrize(("status", "way"), AGAIN_BY.values(), ids=AGAIN_BY)
def test_an_execution_whose_jobs_run_again_is_running_and_waited_for(status: str, way: Way) -> None:
    execution, task = tracked()
    ends(execution, status)
    assert execution.wait(timeout=0) == status
    way(execution, task)
    execution.refresh_from_db()
    assert (execution.status, execution.end_time) == ("Running", None)
    with pytest.raises(StillRunning):
        execution.wait(timeout=0)


def test_the_api_says_what_it_did_and_does_it_once() -> None:
    program, execution = Program(token(Scope.MANAGE)), recorded("a", "b")
    its = f"/executions/{execution.pk}"
    stop_a = f"/tasks/{Task.objects.get(job_id='a').pk}/stop"
    assert [program.post(stop_a) for _ in range(2)] == [{"stopped": True}, {"stopped": False}]
    assert statuses(execution) == ("Running", {"a": "Stopped", "b": "Pending"})
    failed(execution, "b")
    assert [program.post(f"{its}/retry") for _ in range(2)] == [{"retried": 1}, {"retried": 0}]
    answer, again = (program.post(f"{its}/stop") for _ in range(2))
    assert (answer["status"], answer["counts"], answer["progress"]) == ("Stopped", {"Stopped": 2}, 1.0)
    assert again["revision"] == answer["revision"]
    assert tasks() == {"a": ("Stopped", 0, 0, ""), "b": ("Stopped", 1, 1, "tried again")}
    assert rows() == dict.fromkeys("ab", ("ended", 0))
    for path in ("/executions/7777/stop", "/executions/7777/retry", "/tasks/7777/stop"):
        program.post(path, status=404)


# stop(kill_after=…): what is asked of workers. That they kill is in tests/faults/test_ends_of_jobs.py.


@app.task(base=TrackedJob, name="kill_after.work", shared=False)
def work(job: Handle) -> None:
    pass


def two_of_three_run(outbox: Outbox) -> TrackedExecution:
    execution = start_signatures("SCAN", jobs=[work.s(), work.s(), work.s()])
    for message in outbox.take()[:2]:
        assert begun(message)
    return execution


def asked() -> int:
    return Job.objects.filter(kill_at__isnull=False).count()


def test_only_runs_that_were_stopped_are_to_be_killed(outbox: Outbox) -> None:
    execution = two_of_three_run(outbox)
    done = execution.tasks.order_by("pk")[0]
    report([Report(done.pk, "Success", done.status_revision)])
    other = two_of_three_run(outbox)
    assert execution.stop(kill_after=30) == 1
    (job,) = Job.objects.filter(kill_at__isnull=False)
    assert (job.task.execution_id, job.state) == (execution.pk, "ended")
    assert job.kill_at
    assert abs(job.kill_at - timezone.now() - timedelta(seconds=30)) < timedelta(seconds=20)
    assert other.progress().counts == {"Pending": 3}


def test_a_job_that_runs_again_is_not_to_be_killed_any_more(outbox: Outbox) -> None:
    execution = two_of_three_run(outbox)
    execution.stop(kill_after=30)
    assert asked() == 2
    execution.resume_stopped()
    assert asked() == 0


def test_a_stop_without_it_asks_for_nothing_and_a_later_one_for_runs_that_were_stopped(outbox: Outbox) -> None:
    execution = two_of_three_run(outbox)
    execution.stop()
    assert asked() == 0
    execution.stop(kill_after=1)
    assert asked() == 2


@pytest.mark.parametrize("given", [0, 0.5, -1, True, "30", float("inf"), 10**9])
def test_another_time_is_refused_and_nothing_is_stopped(given: Any, outbox: Outbox) -> None:
    execution = two_of_three_run(outbox)
    with pytest.raises(Refused, match="stop: kill_after takes a number of seconds from 1 to"):
        execution.stop(kill_after=given)
    assert ends(execution) == "Success"


def test_the_command_kills_after_so_many_seconds(outbox: Outbox, capsys: pytest.CaptureFixture[str]) -> None:
    execution, other = two_of_three_run(outbox), two_of_three_run(outbox)
    said("harbor", "stop", execution.pk, "--kill-after", "30")
    execution.refresh_from_db()
    assert (execution.status, asked()) == ("Stopped", 2)
    one = [str(other.pk), "--kill-after"]
    for words in (["--all", "--yes", "--kill-after", "30"], [*one, "0"], [*one, "30", "--vendor", "SCAN"]):
        assert "--kill-after takes a number of seconds from 1 to" in misuse(capsys, "harbor", "stop", *words)
    assert ends(other) == "Success"
