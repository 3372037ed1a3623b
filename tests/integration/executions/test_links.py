"""links: a child counts as one task of its parent, at any depth; progress goes up, stops go down."""

import pytest
from django.db import IntegrityError, transaction

from harbor_refresh.executions.errors import AlreadyFinal, ExecutionClosed, NoSuchExecution
from harbor_refresh.executions.lifecycle import retention
from harbor_refresh.executions.lifecycle.creation import NewExecution, NewTask, create
from harbor_refresh.executions.lifecycle.deletion import delete_ended, delete_final
from harbor_refresh.executions.lifecycle.gates import close
from harbor_refresh.executions.lifecycle.links import by_level, family
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.lifecycle.retention import Retention
from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.lifecycle.stops import finish, stop, stop_many, stop_task
from harbor_refresh.executions.models import Execution, Link, Quarantine, Task
from harbor_refresh.executions.news.after_commit import Member
from harbor_refresh.executions.queries.progress import progress
from harbor_refresh.executions.status import Status
from tests.integration.concurrency import in_background, transaction_held_open, wait_until
from tests.integration.database_state import rows, waiting_for_locks
from tests.integration.sample_executions import status_of

pytestmark = pytest.mark.usefixtures("database")


def made(parent: Execution | None = None, tasks: int = 1, **new: float) -> Execution:
    tasks_of_it = [NewTask()] * tasks
    return create(NewExecution("TEST", parent=parent and parent.pk, tasks=tasks_of_it, **new))  # type: ignore[arg-type]


def link_of(child: Execution) -> Task:
    return Task.objects.get(pk=Link.objects.get(pk=child.pk).task_id)


def end(execution: Execution, status: str = "Success", revision: int = 0) -> None:
    """Its own tasks end, and it alone is refreshed."""
    own = execution.tasks.exclude(pk__in=Link.objects.values("task_id"))
    report([Report(pk, status, revision) for pk in own.values_list("pk", flat=True)])
    refresh([execution.pk])


def drain(changed: list[Member]) -> int:
    """Refresh what the news told, until it tells no more; return how many refreshes that took."""
    count = 0
    while changed:
        ids = {pk for pk, _ in changed}
        changed.clear()
        count += len(ids)
        refresh(sorted(ids))
    return count


def statuses(*executions: Execution) -> list[str]:
    return [status_of(one) for one in executions]


@pytest.mark.parametrize("status", ["Success", "Error", "Stopped"])
def test_the_end_of_a_child_is_the_end_of_its_task_in_the_parent(status: str, changed: list[Member]) -> None:
    root = made(tasks=0)
    child = made(root)
    leaf = made(child)
    assert (status_of(root), progress(root.pk).counts) == ("Running", {"Running": 1})
    for one in (leaf, child):
        changed.clear()
        end(one, status)
    drain(changed)
    assert statuses(leaf, child, root) == [status] * 3
    for one in (leaf, child, root):
        one.refresh_from_db()
    assert (link_of(child).end_time, link_of(child).status_revision) == (child.end_time, 1)
    assert root.end_time == max(link_of(child).end_time, link_of(leaf).end_time)


def test_a_parent_runs_until_its_last_child_has_ended(changed: list[Member]) -> None:
    root = made(tasks=1)
    children = [made(root) for _ in range(3)]
    end(root)
    for number, child in enumerate(children):
        assert status_of(root) == "Running"
        assert progress(root.pk).done == 1 + number
        end(child, "Error" if number == 1 else "Success")
        drain(changed)
    assert status_of(root) == "Error"
    failure = link_of(children[1]).status_message
    assert failure == f"execution {children[1].pk} ended as Error"


def test_a_child_that_runs_again_opens_its_ancestors_with_a_newer_revision(changed: list[Member]) -> None:
    root = made(tasks=0)
    child = made(root, tasks=0)
    leaf = made(child)
    end(leaf, "Error")
    drain(changed)
    assert statuses(root, child, leaf) == ["Error"] * 3
    end(leaf, "Running", 1)
    drain(changed)
    assert statuses(root, child, leaf) == ["Running"] * 3
    assert (link_of(leaf).status_revision, link_of(leaf).run_count, link_of(leaf).end_time) == (2, 1, None)
    end(leaf, "Success", 1)
    drain(changed)
    assert statuses(root, child, leaf) == ["Success"] * 3


def test_a_refresh_that_changes_no_status_tells_no_parent(changed: list[Member]) -> None:
    """A subtree costs its ancestors what its status costs, and not what its leaves do."""
    root = made(tasks=0)
    child = made(root, tasks=20)
    tasks = list(child.tasks.values_list("pk", flat=True))
    for pk in tasks[:-1]:
        report([Report(pk, "Success")])
        changed.clear()
        refresh([child.pk])
        assert changed == []
    report([Report(tasks[-1], "Success")])
    changed.clear()
    refresh([child.pk])
    assert changed == [(root.pk, "TEST")]


def test_a_batch_of_children_tells_their_parent_once(changed: list[Member]) -> None:
    root = made(tasks=0)
    children = [made(root) for _ in range(50)]
    report([Report(pk, "Success") for pk in Task.objects.exclude(execution=root).values_list("pk", flat=True)])
    changed.clear()
    refresh([one.pk for one in children])
    assert changed == [(root.pk, "TEST")]
    assert progress(root.pk).counts == {"Success": 50}


def test_an_execution_without_tasks_that_is_ended_by_hand_tells_its_parent(changed: list[Member]) -> None:
    root = made(tasks=0)
    child = made(root, tasks=0)
    finish(child.pk, Status.ERROR)
    assert drain(changed) == 1
    assert statuses(root, child) == ["Error", "Error"]


def test_a_stop_ends_the_whole_family_and_the_rest_of_the_tree_goes_on(changed: list[Member]) -> None:
    root = made(tasks=1)
    child, other = made(root, tasks=2), made(root)
    leaf, empty = made(child, open_seconds=60), made(child, tasks=0)
    ended = made(child)
    end(ended, "Error")
    drain(changed)
    assert stop(child.pk) == 2 + 2  # its own, the leaf's and the gate of the leaf
    assert statuses(child, leaf, empty, ended) == ["Error", "Stopped", "Stopped", "Error"]
    drain(changed)
    assert statuses(root, other) == ["Running", "Running"]
    assert link_of(child).status == "Error"
    with pytest.raises((AlreadyFinal, ExecutionClosed)):
        made(leaf)
    assert stop(root.pk) == 2
    assert statuses(root, other) == ["Error", "Stopped"]
    before = (rows(Execution), rows(Task))
    assert stop(root.pk) == 0
    assert (rows(Execution), rows(Task)) == before


def test_a_stop_of_the_task_of_a_child_stops_the_child() -> None:
    root = made(tasks=0)
    child = made(root, tasks=2)
    assert stop_task(link_of(child).pk)
    assert status_of(child) == "Stopped"
    assert not stop_task(link_of(child).pk)


def test_a_stop_says_that_it_stopped_a_parent_whose_own_tasks_have_ended() -> None:
    root = made(tasks=0)
    parent = made(root, tasks=1)
    child = made(parent)
    end(parent)
    assert stop_many([parent.pk]).executions == [parent.pk]
    assert statuses(parent, child) == ["Stopped", "Stopped"]
    again = made(root, tasks=0)
    made(again)
    assert stop_task(link_of(again).pk)


def test_a_stop_releases_a_family_from_quarantine() -> None:
    root = made(tasks=0)
    child = made(root)
    for one in (root, child):
        Quarantine.objects.create(execution=one, reason="x", attempts=1)
    stop(root.pk)
    assert (statuses(root, child), rows(Quarantine)) == (["Stopped", "Stopped"], {})


def test_a_child_that_is_started_while_its_family_is_stopped_is_stopped_or_refused() -> None:
    for opened in (None, 60.0):
        root = create(NewExecution("TEST", open_seconds=opened))
        mid = create(NewExecution("TEST", parent=root.pk, open_seconds=opened))
        with (
            transaction_held_open(lambda mid=mid: made(mid)) as commit,
            in_background(lambda root=root: stop(root.pk)) as stopped,
        ):
            wait_until(lambda: waiting_for_locks() == 1, "the stop waits for the new child")
            commit()
            stopped()
        new = Link.objects.get(parent=mid).child
        assert statuses(root, mid, new) == ["Stopped"] * 3


def test_an_execution_that_has_ended_or_is_closed_takes_no_child() -> None:
    ended, closed = made(), made(open_seconds=60)
    end(ended)
    close(closed.pk)
    before = rows(Execution)
    with pytest.raises(AlreadyFinal):
        made(ended)
    with pytest.raises(ExecutionClosed):
        made(closed)
    with pytest.raises(NoSuchExecution):
        create(NewExecution("TEST", parent=7_777))
    assert rows(Execution) == before


def test_no_execution_is_its_own_ancestor() -> None:
    root = made(tasks=0)
    child = made(root)
    task = link_of(child).pk
    for low, high in ((root, root), (root, child)):
        with pytest.raises(IntegrityError, match="link_leads_to_a_later_execution"), transaction.atomic():
            Link.objects.create(child=low, parent=high, task_id=task + 1)


def test_a_family_is_of_any_depth_and_each_level_is_below_the_one_before() -> None:
    chain = [made(tasks=0)]
    for _ in range(30):
        chain.append(made(chain[-1], tasks=0))
    assert family([chain[0].pk]) == {one.pk for one in chain}
    assert by_level([one.pk for one in chain]) == [[one.pk] for one in reversed(chain)]
    stop(chain[0].pk)
    assert set(statuses(*chain)) == {"Stopped"}


def test_a_deleted_child_ends_its_task_and_a_deleted_parent_leaves_its_children(changed: list[Member]) -> None:
    root = made(tasks=0)
    child, other = made(root), made(root)
    report([Report(child.tasks.get().pk, "Success")])  # it is not refreshed
    delete_ended(child.pk)
    drain(changed)
    assert progress(root.pk).counts == {"Stopped": 1, "Running": 1}
    end(other)
    drain(changed)
    assert status_of(root) == "Stopped"
    delete_ended(root.pk)
    assert not Link.objects.exists()
    end(other, "Error", 1)
    assert status_of(other) == "Error"


def test_a_child_that_was_swept_keeps_its_end_in_its_parent(changed: list[Member]) -> None:
    root = made(tasks=0)
    child, other = made(root), made(root)
    end(child, "Error")
    drain(changed)
    assert delete_final([child.pk]) == (1, 1)
    assert progress(root.pk).counts == {"Error": 1, "Running": 1}
    end(other)
    drain(changed)
    assert status_of(root) == "Error"


def test_an_execution_is_not_swept_before_all_above_it_have_ended(changed: list[Member]) -> None:
    """Else a retry of the root could not run the failed jobs of the leaf again."""
    root = made(tasks=1)
    parent = made(root, tasks=0)
    leaf = made(parent)
    end(leaf, "Error")
    drain(changed)
    assert statuses(root, parent, leaf) == ["Running", "Error", "Error"]
    assert retention.find(Retention({}, 0), retention.Position()).found == {}
    end(root)
    assert list(retention.find(Retention({}, 0), retention.Position()).found) == [root.pk, parent.pk, leaf.pk]


def test_a_child_is_not_swept_before_its_parent_has_ended(changed: list[Member]) -> None:
    """Of this vendor the newest alone is kept."""
    root = made(tasks=1)
    children = [create(NewExecution("IMAGE_SCAN", parent=root.pk, tasks=[NewTask()])) for _ in range(3)]
    for child in children:
        end(child)
    drain(changed)
    assert retention.find(Retention.of_settings(), retention.Position()).found == {}
    end(root)
    found = retention.find(Retention.of_settings(), retention.Position()).found
    assert list(found) == [child.pk for child in children[:2]]
