"""start(parent=…): a job starts a child of its execution; stops and retries go down. start(open=True): it grows
until it is closed."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from celery import Celery, chain
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from harbor_refresh.executions.admin.lists import with_task_counts
from harbor_refresh.executions.errors import AlreadyFinal, ExecutionClosed, NoSuchExecution, Refused, StillRunning
from harbor_refresh.executions.lifecycle.gates import close_overdue
from harbor_refresh.executions.lifecycle.quarantines import quarantine
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.models import Addition, Delivery, Execution, Gate, Quarantine, Subscription, Task
from harbor_refresh.executions.news.deliveries.claims import read_changes
from harbor_refresh.executions.queries.progress import Progress
from harbor_refresh.tasks.jobs import Handle, TrackedExecution, TrackedJob, sender, start
from harbor_refresh.tasks.jobs.live_workers import this_worker
from harbor_refresh.tasks.jobs.running.handle import Untracked
from harbor_refresh.tasks.jobs.stops import stop_jobs
from harbor_refresh.tasks.models import Job
from tests.integration.concurrency import at_once, one_after_the_other
from tests.integration.database_state import deadlocks_so_far, rows
from tests.integration.jobs.sample_jobs import Outbox, arguments_sent, beats, delivered, ends

app = Celery("a nesting team", set_as_current=False)

pytestmark = pytest.mark.usefixtures("database", "outbox")


@app.task(base=TrackedJob, name="a.nested.job", shared=False)
def scan(job: Handle, name: str) -> None:
    pass


def child_of(parent: Execution | None, *names: str, once: str = "") -> TrackedExecution:
    return start("SCAN", jobs=[scan.s(name) for name in names], parent=parent, once=once)


def statuses(*executions: Execution) -> list[str]:
    for one in executions:
        one.refresh_from_db()
    return [one.status for one in executions]


def test_a_child_without_jobs_has_ended_and_so_has_its_task() -> None:
    root = child_of(None, "a")
    assert (child_of(root).status, root.progress().counts) == ("Success", {"Pending": 1, "Success": 1})


def test_deep_progress_counts_the_jobs_of_all_descendants_and_no_task_that_stands_for_others(
    django_assert_num_queries: Any,
) -> None:
    root = start("SCAN", jobs=[scan.s("a")], open=True)
    child, deleted = child_of(root, "b", "c"), child_of(root, "d")
    leaf, empty, _ = child_of(child, "e", "f", "g"), child_of(child), child_of(None, "not of the family")
    ends(leaf)
    deleted.delete()
    with django_assert_num_queries(1):
        found = root.progress(deep=True)
    # not the gate, nor the tasks of child, leaf and empty; that of the deleted child is all that is left of it
    assert found == Progress("Running", {"Pending": 3, "Running": 1, "Success": 3}, 7, 3, found.eta, is_open=True)
    assert (found.share, found.eta is None) == (3 / 7, False)
    assert root.progress().counts == {"Pending": 1, "Running": 2}
    of_child = child.progress(deep=True)
    assert of_child == Progress("Running", {"Pending": 2, "Success": 3}, 5, 3, of_child.eta)
    assert leaf.progress(deep=True) == Progress("Success", {"Success": 3}, 3, 3, None)
    assert empty.progress(deep=True) == Progress("Success", {}, 0, 0, None)
    with pytest.raises(NoSuchExecution):
        TrackedExecution(pk=4711).progress(deep=True)


def test_a_child_with_a_key_is_started_once(outbox: Outbox) -> None:
    root, other = child_of(None, "a"), child_of(None, "a")
    child = child_of(root, "b", once="page 1")
    assert child_of(root, "b", once="page 1") == child
    assert len({child_of(root, "b", once="page 2"), child_of(other, "b", once="page 1"), child}) == 3
    assert arguments_sent(outbox) == ["a", "a", "b", "b", "b"]


def test_a_child_and_an_addition_may_have_one_key(outbox: Outbox) -> None:
    root = child_of(None, "a")
    child = child_of(root, "of the child", once="k")
    assert [root.add([scan.s("added")], once="k") for _ in range(2)] == [1, 0]
    assert child_of(root, "of the child", once="k") == child
    assert arguments_sent(outbox) == ["a", "added", "of the child"]


@pytest.mark.parametrize("parent", [5, "5", object(), Execution(vendor_type="SCAN")])
def test_a_parent_that_is_no_execution_in_the_database_is_refused(parent: Any) -> None:
    child_of(None, "a")
    before = rows(Execution)
    with pytest.raises(Refused, match="parent takes an execution that is in the database, and got "):
        child_of(parent, "b")
    assert rows(Execution) == before


def test_an_older_design_takes_no_parent(settings: Settings) -> None:
    root = child_of(None, "a")
    settings.REFRESH_STRATEGY = "upstream"
    with pytest.raises(Refused, match="parent takes REFRESH_STRATEGY=claim"):
        child_of(root, "b")


def test_of_one_child_that_many_start_at_once_one_is_started(outbox: Outbox) -> None:
    root = child_of(None, "a")
    assert len(set(at_once(*[lambda: child_of(root, "b", once="k")] * 8))) == 1
    assert arguments_sent(outbox) == ["a", "b"]


def test_a_retry_opens_no_gate_beside_it_and_a_resumption_all_below_it() -> None:
    root = child_of(None, "a")
    stopped, failed = start("SCAN", open=True, parent=root), child_of(root, "b")
    stopped.stop()
    ends(root)
    ends(failed, "Error")
    assert statuses(root, stopped, failed) == ["Error", "Stopped", "Error"]
    assert root.retry_failed() == 1
    ends(failed)
    assert statuses(root, stopped, failed) == ["Stopped", "Stopped", "Success"]
    assert root.resume_stopped() == 0
    assert statuses(root, stopped, failed) == ["Success"] * 3


def gate_of(execution: Execution) -> str:
    return Task.objects.get(pk=Gate.objects.get(pk=execution.pk).task_id).status


def test_a_stop_that_comes_while_a_child_runs_again_stops_it_once_more() -> None:
    """The gate is open already, so what was stopped is its job."""
    root = start("SCAN", open=True)
    child = child_of(root, "a")
    root.stop()
    resumed, _ = one_after_the_other(child.resume_stopped, lambda: stop_jobs(root.pk))
    assert resumed == 1
    assert (statuses(root, child), gate_of(root)) == (["Stopped", "Stopped"], "Success")
    assert root.resume_stopped() == 1
    ends(child)
    assert statuses(root, child) == ["Success", "Success"]


def test_stops_of_a_family_and_other_runs_of_its_children_at_once_never_deadlock() -> None:
    root = start("SCAN", open=True)
    mid = start("SCAN", open=True, parent=root)
    leaves = [child_of(mid, name) for name in "abc"]
    before = deadlocks_so_far()

    def fail() -> None:
        found = Task.objects.filter(execution__in=leaves, status_code__lt=3).order_by("-pk")
        report([Report(one.pk, "Error", one.status_revision) for one in found])

    def again_and_again(*verbs: Callable[[], object]) -> Callable[[], None]:
        def do() -> None:
            for _ in range(6):
                for verb in verbs:
                    verb()

        return do

    at_once(
        again_and_again(root.stop),
        again_and_again(mid.stop, mid.resume_stopped),
        *(again_and_again(leaf.resume_stopped, leaf.stop) for leaf in leaves),
        again_and_again(root.resume_stopped, lambda: refresh([root.pk, mid.pk, leaves[0].pk])),
        again_and_again(fail, root.retry_failed),
    )
    assert deadlocks_so_far() == before
    root.resume_stopped()
    root.retry_failed()
    for leaf in leaves:
        ends(leaf)
    assert statuses(root, mid, *leaves) == ["Success"] * 5


def test_a_retry_goes_down_to_what_failed_and_up_again(outbox: Outbox) -> None:
    root = child_of(None, "a")
    good, bad = child_of(root, "b"), child_of(root, "c")
    leaf = child_of(bad, "d")
    for one, status in ((root, "Success"), (good, "Success"), (bad, "Success"), (leaf, "Error")):
        ends(one, status)
    assert statuses(root, good, bad, leaf) == ["Error", "Success", "Error", "Error"]
    arguments_sent(outbox)
    assert root.retry_failed() == 1
    assert statuses(root, good, bad, leaf) == ["Running", "Success", "Running", "Running"]
    assert arguments_sent(outbox) == ["d"]
    ends(leaf)
    assert statuses(root, good, bad, leaf) == ["Success"] * 4
    assert root.retry_failed() == 0


@pytest.mark.parametrize("is_open", [False, True], ids=["with jobs", "stopped while open"])
@pytest.mark.parametrize("status", ["Error", "Stopped"])
def test_the_ancestors_of_a_child_that_runs_again_alone_are_running_when_that_returns(
    status: str, is_open: bool
) -> None:
    root = start("SCAN", jobs=[] if is_open else [scan.s("a")], open=is_open)
    mid = start("SCAN", jobs=[] if is_open else [scan.s("b")], open=is_open, parent=root)
    leaf = child_of(mid, "c")
    if status == "Error":
        ends(leaf, "Error")
    root.stop()
    assert statuses(root, mid, leaf) == [status] * 3
    quarantine([root.pk], 5)
    assert (leaf.retry_failed() if status == "Error" else leaf.resume_stopped()) == 1
    assert statuses(root, mid, leaf) == ["Running"] * 3
    assert not Quarantine.objects.exists()
    with pytest.raises(StillRunning):
        root.wait(timeout=0)
    ends(leaf)
    assert statuses(root, mid, leaf) == (["Success"] * 3 if is_open else ["Stopped", "Stopped", "Success"])


# open executions: jobs are added until they are closed, from outside or by their jobs


def opened(*names: str, **options: Any) -> TrackedExecution:
    return start("SCAN", jobs=[scan.s(name) for name in names], open=True, **options)


def test_jobs_are_added_until_it_is_closed_and_it_ends_with_the_last(outbox: Outbox) -> None:
    execution = opened()
    assert (execution.status, arguments_sent(outbox)) == ("Running", [])
    assert execution.add([scan.s("a"), chain(scan.si("b"), scan.si("c"))]) == 3
    assert arguments_sent(outbox) == ["a", "b"]
    assert ends(execution) == "Running"
    assert execution.add([scan.s("d")]) == 1
    assert execution.close()
    assert not execution.close()
    assert ends(execution) == "Success"
    for jobs in ([scan.s("e")], []):
        with pytest.raises(ExecutionClosed):
            execution.add(jobs)
    assert list(Job.objects.order_by("pk").values_list("args", flat=True)) == [["a"], ["b"], ["c"], ["d"]]


def test_an_addition_costs_what_it_adds_and_not_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "FLOOR", 10_000)  # the broker has room for all
    execution = opened()

    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            execution.add([scan.s("x")])
        return len(captured)

    before = queries()
    execution.add(scan.s(str(number)) for number in range(2_500))
    assert queries() == before


def test_what_cannot_be_run_is_refused_and_leaves_nothing() -> None:
    execution = opened()
    with pytest.raises(Refused, match="takes signatures of tracked jobs"):
        execution.add(5)  # type: ignore[arg-type]
    with pytest.raises(Refused, match="takes arguments that are JSON"):
        execution.add([scan.s(object())], once="k")
    with pytest.raises(Refused, match="close_after is the time limit of an open execution"):
        start("SCAN", jobs=[scan.s("a")], close_after=5)
    with pytest.raises(Refused, match="the time limit of an open execution takes seconds"):
        opened(close_after=0)
    assert (Execution.objects.count(), Job.objects.count(), Addition.objects.count()) == (1, 0, 0)


@pytest.mark.usefixtures("at_once")
def test_a_job_adds_jobs_to_its_execution_while_it_runs(outbox: Outbox) -> None:
    """The execution was not opened: the task of the job keeps it from ending."""
    beats(this_worker.id)
    execution = start("SCAN", jobs=[scan.s("a")])
    handles: list[Handle] = []

    def work(job: Handle) -> None:
        handles.append(job)
        assert (job.execution, job.execution.add([scan.s("b")])) == (execution, 1)

    (message,) = outbox.take()
    delivered(message, work)
    assert arguments_sent(outbox) == ["b"]
    assert ends(execution) == "Success"
    with pytest.raises(AlreadyFinal):
        handles[0].execution.add([scan.s("c")])
    with pytest.raises(Refused, match="called like a function"):
        assert Untracked(scan).execution


def stopped(execution: TrackedExecution) -> None:
    execution.stop()


def failed_and_stopped(execution: TrackedExecution) -> None:
    """While it was open. Its status is Error as before, so a retry is what its operator finds to do."""
    assert ends(execution, "Error") == "Running"
    execution.stop()


@pytest.mark.parametrize(
    ("end", "status", "verb"),
    [
        (stopped, "Stopped", TrackedExecution.resume_stopped),
        (failed_and_stopped, "Error", TrackedExecution.retry_failed),
    ],
)
def test_another_run_opens_no_execution_and_it_may_succeed(end: Any, status: str, verb: Any) -> None:
    execution = opened("a")
    end(execution)
    assert execution.status == status
    with pytest.raises(ExecutionClosed):
        execution.add([scan.s("b")])
    assert verb(execution) == 1
    with pytest.raises(ExecutionClosed):
        execution.add([scan.s("b")])
    assert ends(execution) == "Success"


@pytest.mark.parametrize(("stops_first", "status"), [(True, "Success"), (False, "Error")])
def test_of_a_stop_and_the_time_limit_the_first_says_whether_a_retry_opens_the_gate(
    stops_first: bool, status: str
) -> None:
    """After the limit jobs may be missing, which no retry brings."""
    execution = opened("a")
    ends(execution, "Error")
    Gate.objects.update(closes_at=timezone.now() - timedelta(seconds=1))
    for end in (execution.stop, close_overdue) if stops_first else (close_overdue, execution.stop):
        end()
    assert execution.retry_failed() == 1
    assert close_overdue() == 0
    assert ends(execution) == status


def test_the_gate_is_no_job_for_those_who_count(outbox: Outbox) -> None:
    execution = opened("a", "b")
    execution.close()
    assert ends(execution) == "Success"
    assert execution.progress().counts == {"Success": 2}
    [row] = with_task_counts([execution])
    assert row.__dict__["task_counts"] == {"Success": 2}
    change = Delivery(pk=1, execution_id=execution.pk, subscription=Subscription(), changed_at=execution.end_time)
    assert read_changes([change])[1].counts == {"Success": 2}
