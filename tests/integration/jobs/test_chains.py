"""Jobs of a chain: what becomes of them when the job before them ends, whoever says so."""

import pytest
from django.db import connection, transaction
from django.db.models import RestrictedError

from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.models import Execution, Task
from harbor_refresh.executions.status import Status
from harbor_refresh.tasks.jobs.again import resume_stopped, retry_failed
from harbor_refresh.tasks.jobs.nodes import this_node
from harbor_refresh.tasks.jobs.outcomes import Begun, Outcome, take
from harbor_refresh.tasks.jobs.stops import stop_jobs
from harbor_refresh.tasks.models import Job
from harbor_refresh.tasks.models.job import Takes
from tests.integration.concurrency import in_background, transaction_held_open, wait_until
from tests.integration.database_state import waiting_for_locks
from tests.integration.jobs.sample_jobs import Outbox, beats, begun, chained, named, rows, tasks
from tests.integration.jobs.test_a_run_in_its_process import got

pytestmark = pytest.mark.usefixtures("database", "at_once")

LOST = ("Error", "the result of task a, which it takes, was lost")
WAITS = ("Pending", "")


def broken(by: str = "a", status: str = "Error") -> tuple[str, str]:
    """The end of a job that needs that one, which has ended so."""
    return "Stopped", f"it needs a.job (task {by}), which has ended as {status}"


@pytest.fixture(autouse=True)
def worker(database: str) -> None:
    """This process is a worker."""
    beats(this_node.id)


def said() -> dict[str, tuple[str, str]]:
    return {name: (status, named(message)) for name, (status, _, _, message) in tasks().items()}


def reported(name: str, status: str, revision: int = 0) -> None:
    """Another program reports this status of the job."""
    report([Report(Task.objects.get(job_id=name).pk, status, revision)])


def running(outbox: Outbox) -> Begun:
    """The first job of the chain."""
    run = begun(outbox.take()[0], node=this_node.id)
    assert run
    return run


@pytest.mark.parametrize("status", ["Error", "Stopped"])
def test_a_chain_whose_job_has_not_succeeded_ends_whoever_says_so(status: str, outbox: Outbox) -> None:
    chained("a", "b", "c")
    chained("other a", "other b")
    reported("a", status)
    ends = {"a": (status, ""), "b": broken(status=status), "c": broken(status=status)}
    assert said() == ends | {"other a": WAITS, "other b": WAITS}
    assert [rows()[name][0] for name in "abc"] == ["ended"] * 3


def test_an_end_reads_nothing_of_other_chains() -> None:
    for number in range(50):
        chained(f"{number} a", f"{number} b", takes=Takes.NOTHING)
    with transaction.atomic(), connection.cursor() as cursor:
        for number in range(20):
            reported(f"{number} a", "Error" if number % 2 else "Success")
        cursor.execute(
            "SELECT pg_stat_get_xact_tuples_returned('job_unmet'::regclass),"
            " pg_stat_get_xact_tuples_returned(indexrelid)"
            " FROM pg_index WHERE indrelid = 'execution_need'::regclass"
        )
        assert all(unmet == 0 and needs <= 20 * 8 for unmet, needs in cursor.fetchall())


def test_a_success_that_another_program_reports_is_followed_by_a_job_that_takes_no_result(outbox: Outbox) -> None:
    chained("a", "b", takes=Takes.NOTHING)
    outbox.take()
    reported("a", "Success")
    assert Job.objects.get(task__job_id="b").waits_for == 0, "its turn has come"


@pytest.mark.parametrize("runs", [False, True])
def test_a_job_whose_argument_was_lost_fails_and_ends_its_chain_for_good(runs: bool, outbox: Outbox) -> None:
    """Another program has reported the success of the job before it, which has left no result."""
    execution = chained("a", "b", "c")
    run = running(outbox) if runs else None
    reported("a", "Success")
    assert said() == {"a": ("Success", ""), "b": LOST, "c": broken("b")}
    assert run is None or take([Outcome(run.run, Status.SUCCESS, result="7")]) == []
    assert retry_failed(execution.pk) == 0, "it never runs without its argument"
    assert outbox.take() == [] or not runs


def test_a_chain_that_is_tried_again_goes_on_with_what_its_new_run_returns(outbox: Outbox) -> None:
    execution = chained("a", "b")
    run = running(outbox)
    reported("a", "Error")
    assert take([Outcome(run.run, Status.SUCCESS, result='"too late"')]) == []
    assert said() == {"a": ("Error", ""), "b": broken()}
    assert retry_failed(execution.pk) == 2
    got(*outbox.take(), lambda *_: "in time")
    assert got(*outbox.take()) == ["in time", "b"]


def test_a_job_that_failed_behind_a_stopped_one_runs_again_with_that_one(outbox: Outbox) -> None:
    """Another program has said that it failed, before its turn. Alone, it would wait for good."""
    execution = chained("a", "b", "c")
    outbox.take()
    reported("b", "Error")
    stop_jobs(execution.pk)
    assert retry_failed(execution.pk) == 0
    assert resume_stopped(execution.pk) == 3
    assert [got(*outbox.take(), lambda *_: 7) for _ in range(3)] == [["a"], [7, "b"], [7, "c"]]
    assert {status for status, _ in said().values()} == {"Success"}


def test_a_job_that_failed_behind_a_failed_one_runs_again_after_it(outbox: Outbox) -> None:
    execution = chained("a", "b")
    outbox.take()
    reported("b", "Error")
    reported("a", "Error")
    assert retry_failed(execution.pk) == 2
    assert [got(*outbox.take(), lambda *_: 7) for _ in range(2)] == [["a"], [7, "b"]]


def test_the_end_of_an_earlier_run_ends_no_chain_that_is_tried_again_at_this_moment(outbox: Outbox) -> None:
    execution = chained("a", "b")
    run = running(outbox)
    reported("a", "Error")
    with (
        transaction_held_open(lambda: retry_failed(execution.pk)) as commit,
        in_background(lambda: take([Outcome(run.run, Status.ERROR, "too late")])) as ended,
    ):
        wait_until(waiting_for_locks, "the end of the chain to wait")
        assert commit() == 2
        assert ended() == []
    assert said() == {"a": ("Pending", "tried again"), "b": ("Pending", "tried again")}


def test_a_job_that_has_had_its_turn_is_not_ended_for_a_later_run_of_the_job_before_it(outbox: Outbox) -> None:
    chained("a", "b", "c")
    got(*outbox.take(), lambda *_: 7)
    reported("a", "Error", 1)
    assert said() == {"a": ("Error", ""), "b": WAITS, "c": WAITS}
    assert got(*outbox.take()) == [7, "b"]


def test_a_task_that_another_job_follows_is_deleted_only_with_it(outbox: Outbox) -> None:
    execution: Execution = chained("a", "b")
    with pytest.raises(RestrictedError), transaction.atomic():
        Task.objects.get(job_id="a").delete()
    assert (Task.objects.count(), Job.objects.count()) == (2, 2)
    execution.delete()
    assert (Task.objects.count(), Job.objects.count()) == (0, 0)
