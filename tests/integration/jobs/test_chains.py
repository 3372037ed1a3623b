"""Jobs of a chain: what becomes of them when the job before them ends, whoever says so."""

import pytest
from django.db import transaction
from django.db.models import RestrictedError

from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.models import Execution, Task
from harbor_refresh.executions.status import Status
from harbor_refresh.tasks.jobs.again import retry_failed
from harbor_refresh.tasks.jobs.nodes import this_worker
from harbor_refresh.tasks.jobs.outcomes import Begun, Outcome, take
from harbor_refresh.tasks.models import Job
from harbor_refresh.tasks.models.job import JobInput
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
    beats(this_worker.id)


def said() -> dict[str, tuple[str, str]]:
    return {name: (status, named(message)) for name, (status, _, _, message) in tasks().items()}


def reported(name: str, status: str, revision: int = 0) -> None:
    """Another program reports this status of the job."""
    report([Report(Task.objects.get(job_id=name).pk, status, revision)])


def running(outbox: Outbox) -> Begun:
    """The first job of the chain."""
    run = begun(outbox.take()[0], node=this_worker.id)
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


def test_a_success_that_another_program_reports_is_followed_by_a_job_that_takes_no_result(outbox: Outbox) -> None:
    chained("a", "b", takes=JobInput.NOTHING)
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
