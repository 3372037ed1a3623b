"""start(parent=…): a job starts a child of its execution; stops and retries go down."""

from collections.abc import Callable
from typing import Any

import pytest
from celery import Celery
from pytest_django import Settings

from harbor_refresh.executions.errors import NoSuchExecution, Refused, StillRunning
from harbor_refresh.executions.lifecycle.quarantines import quarantine
from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.models import Execution, Gate, Quarantine, Task
from harbor_refresh.executions.queries.progress import Progress
from harbor_refresh.tasks.jobs import Handle, TrackedExecution, TrackedJob, start
from harbor_refresh.tasks.jobs.stops import stop_jobs
from tests.integration.concurrency import at_once, in_background, transaction_held_open, wait_until
from tests.integration.database_state import deadlocks_so_far, rows, waiting_for_locks
from tests.integration.jobs.sample_jobs import Outbox, arguments_sent, ends

app = Celery("a nesting team", set_as_current=False)

pytestmark = pytest.mark.usefixtures("database")


@app.task(base=TrackedJob, name="a.nested.job", shared=False)
def scan(job: Handle, name: str) -> None:
    pass


def child_of(parent: Execution | None, *names: str, once: str = "") -> TrackedExecution:
    return start("SCAN", jobs=[scan.s(name) for name in names], parent=parent, once=once)


def statuses(*executions: Execution) -> list[str]:
    for one in executions:
        one.refresh_from_db()
    return [one.status for one in executions]


def test_a_child_without_jobs_has_ended_and_so_has_its_task(outbox: Outbox) -> None:
    root = child_of(None, "a")
    assert (child_of(root).status, root.progress().counts) == ("Success", {"Pending": 1, "Success": 1})


def test_deep_progress_counts_the_jobs_of_all_descendants_and_no_task_that_stands_for_others(
    outbox: Outbox, django_assert_num_queries: Any
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
def test_a_parent_that_is_no_execution_in_the_database_is_refused(parent: Any, outbox: Outbox) -> None:
    child_of(None, "a")
    before = rows(Execution)
    with pytest.raises(Refused, match="parent takes an execution that is in the database, and got "):
        child_of(parent, "b")
    assert rows(Execution) == before


def test_an_older_design_takes_no_parent(outbox: Outbox, settings: Settings) -> None:
    root = child_of(None, "a")
    settings.REFRESH_STRATEGY = "upstream"
    with pytest.raises(Refused, match="parent takes REFRESH_STRATEGY=claim"):
        child_of(root, "b")


def test_of_one_child_that_many_start_at_once_one_is_started(outbox: Outbox) -> None:
    root = child_of(None, "a")
    assert len(set(at_once(*[lambda: child_of(root, "b", once="k")] * 8))) == 1
    assert arguments_sent(outbox) == ["a", "b"]


def test_a_stop_goes_down_and_a_resumption_after_it(outbox: Outbox) -> None:
    root = child_of(None, "a")
    child = child_of(root, "b")
    leaf = child_of(child, "c")
    root.stop()
    assert statuses(root, child, leaf) == ["Stopped"] * 3
    arguments_sent(outbox)
    assert root.resume_stopped() == 3
    assert statuses(root, child, leaf) == ["Running"] * 3
    assert arguments_sent(outbox) == ["a", "b", "c"]
    for one in (leaf, child, root):
        ends(one)
    assert statuses(root, child, leaf) == ["Success"] * 3


def test_a_retry_opens_no_gate_beside_it_and_a_resumption_all_below_it(outbox: Outbox) -> None:
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


def test_a_stop_that_comes_while_a_child_runs_again_stops_it_once_more(outbox: Outbox) -> None:
    """The gate is open already, so what was stopped is its job."""
    root = start("SCAN", open=True)
    child = child_of(root, "a")
    root.stop()
    with (
        transaction_held_open(child.resume_stopped) as commit,
        in_background(lambda: stop_jobs(root.pk)) as stopped,
    ):
        wait_until(lambda: waiting_for_locks() == 1, "the stop waits for the resumption")
        assert commit() == 1
        stopped()
    assert (statuses(root, child), gate_of(root)) == (["Stopped", "Stopped"], "Success")
    assert root.resume_stopped() == 1
    ends(child)
    assert statuses(root, child) == ["Success", "Success"]


def test_stops_of_a_family_and_other_runs_of_its_children_at_once_never_deadlock(outbox: Outbox) -> None:
    root = start("SCAN", open=True)
    mid = start("SCAN", open=True, parent=root)
    leaves = [child_of(mid, name) for name in "abc"]
    before = deadlocks_so_far()

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
    )
    assert deadlocks_so_far() == before
    root.resume_stopped()
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
    status: str, is_open: bool, outbox: Outbox
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
