"""Links: an execution may be the child of another one, and counts as one task of it, at any depth.

The link task of a child is Running as long as the child is, and then has its status and its end. So a parent is
rolled up from its tasks like any execution.

Up goes a status: the transaction that changes it writes the link task, and marks the parent after its commit
(`carry_up`). If the process dies in between, reconcile finds the parent, as after any report. A batch of leaves
costs an ancestor a refresh at most.

Down go a stop, a retry and a resumption: they lock the whole family, in id order (`lock_family`). A retry and a
resumption lock the ancestors before (`lock_ancestors`), lift their stops and refresh those that are not Running,
so that none of them seems to have ended after the commit.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence

from django.db.models.functions import Now

from harbor_refresh.executions.attached.attachment import is_attached
from harbor_refresh.executions.database import allow_long_statements, among, run
from harbor_refresh.executions.models import Execution, Link, Task
from harbor_refresh.executions.news.after_commit import tell_touched_after_commit
from harbor_refresh.executions.status import CODES, Status, is_final


def running_task(execution: Execution) -> Task:
    """Make a task of this execution that is Running as long as what it stands for."""
    running = {"status": Status.RUNNING, "status_code": CODES[Status.RUNNING], "start_time": Now()}
    return Task.objects.create(execution=execution, vendor_type=execution.vendor_type, **running)


def make(parent: Execution, child: Execution, key: str = "") -> None:
    """Make the new execution a child of the parent, which the caller's transaction holds open."""
    Link.objects.create(child=child, parent=parent, task_id=running_task(parent).pk, key=key)


def child_of_key(parent_id: int, key: str) -> Execution | None:
    return Execution.objects.filter(link_to_parent__parent=parent_id, link_to_parent__key=key).first()


def child_of_task(task_id: int) -> int | None:
    """Return the child whose link task this is; None if it is another task."""
    return Link.objects.filter(task_id=task_id).values_list("child_id", flat=True).first()


def family(execution_ids: Collection[int]) -> set[int]:
    """Return these executions and all their descendants. Unknown ids stay."""
    return {*execution_ids, *_reached(execution_ids, "parent_id", "child_id")}


def ancestors(execution_ids: Collection[int]) -> set[int]:
    return _reached(execution_ids, "child_id", "parent_id")


def _reached(execution_ids: Collection[int], near: str, far: str) -> set[int]:
    """Follow the links from `near` to `far`. It ends, because a child has a higher id than its parent."""
    at, reached = set(execution_ids), set[int]()
    while at:
        at = set(Link.objects.filter(among(at, near)).values_list(far, flat=True))
        reached |= at
    return reached


def with_unfinished_ancestor(execution_ids: Collection[int]) -> set[int]:
    """Return those of these executions below one that has not ended. Not in SQL: PostgreSQL takes a recursion to
    be so long that it would compile the statement."""
    below = set[int]()
    reached = {pk: pk for pk in execution_ids}  # from each, a level higher with each look
    while reached:
        links = Link.objects.filter(among(set(reached.values()), "child_id"))
        rows = links.values_list("child_id", "parent_id", "parent__status")
        parents = {child: (parent, status) for child, parent, status in rows}
        above = {pk: parents[child] for pk, child in reached.items() if child in parents}
        below.update(pk for pk, (_, status) in above.items() if not is_final(status))
        reached = {pk: parent for pk, (parent, _) in above.items() if pk not in below}
    return below


def lock_ancestors(execution_ids: Sequence[int]) -> list[Execution]:
    """Lock all ancestors of these executions, in id order, without their gates. A caller that locks the family as
    well does that next: the ids of ancestors are lower. What is deleted meanwhile is left out, with what is above
    it."""
    locked = _lock(ancestors(execution_ids))
    still = ancestors(execution_ids)
    return [one for one in locked if one.pk in still]


def lock_family(execution_ids: Sequence[int]) -> list[Execution]:
    """Lock these executions and all their descendants, each with its gate, in id order; return those that exist.

    A child may be added meanwhile to an execution that is not locked yet; its id is higher. So look again until
    nothing new is found: nothing is added to an execution that is locked with its gate. A child whose parent was
    deleted meanwhile is left out. The caller may change each task of each of them, which takes its time.
    """
    allow_long_statements()
    locked: dict[int, Execution] = {}
    while True:
        ids = family(execution_ids)
        if not (found := _lock(ids - locked.keys())):
            return [one for one in locked.values() if one.pk in ids]
        locked |= {one.pk: one for one in found}
        run("locks/lock_gates", execution_ids=[one.pk for one in found])


def _lock(execution_ids: Collection[int]) -> list[Execution]:
    rows = Execution.objects.select_for_update(no_key=True).filter(among(execution_ids)).order_by("pk")
    return list(rows.only("vendor_type", "status"))


def by_level(execution_ids: Collection[int]) -> list[list[int]]:
    """Divide these executions, of which no two of a part are parent and child: children before their parents."""
    parents = dict(Link.objects.filter(among(execution_ids, "child_id")).values_list("child_id", "parent_id"))
    depths: dict[int, int] = {}
    levels = defaultdict[int, list[int]](list)
    for pk in sorted(execution_ids):  # a parent has a lower id than its child
        depths[pk] = depths.get(parents.get(pk, 0), 0) + 1
        levels[depths[pk]].append(pk)
    return [levels[depth] for depth in sorted(levels, reverse=True)]


def carry_up(ids: list[int] | str) -> None:
    """Bring the link tasks of these executions (`str`: the text of an array) to their status, in the transaction
    that has changed it, and mark the parents after its commit."""
    if not is_attached() and (parents := run("carry_up", ids=ids)):
        tell_touched_after_commit(parents)
