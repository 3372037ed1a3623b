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
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from django.db.models.functions import Now

from harbor_refresh.executions.attached.attachment import is_attached
from harbor_refresh.executions.database import allow_long_statements, among, run
from harbor_refresh.executions.models import Execution, Link, Task
from harbor_refresh.executions.news.after_commit import tell_touched_after_commit
from harbor_refresh.executions.status import CODES, Status


@dataclass(frozen=True)
class Relative:
    """An execution of a family, which this transaction has locked. The level of a child is above its parent's."""

    id: int
    vendor_type: str
    status: str
    level: int = 0


def running_tasks(executions: Iterable[Execution]) -> list[Task]:
    """Make a task for each of these executions that is Running as long as what it stands for."""
    code, begin = CODES[Status.RUNNING], Now()
    return Task.objects.bulk_create(
        Task(execution=one, vendor_type=one.vendor_type, status=Status.RUNNING, status_code=code, start_time=begin)
        for one in executions
    )


def make(parent: Execution, child: Execution, key: str = "") -> None:
    """Make the new execution a child of the parent, which the caller's transaction holds open."""
    [task] = running_tasks([parent])
    Link.objects.create(child=child, parent=parent, task_id=task.pk, key=key)


def child_of_key(parent_id: int, key: str) -> Execution | None:
    return Execution.objects.filter(link_to_parent__parent=parent_id, link_to_parent__key=key).first()


def child_of_task(task_id: int) -> int | None:
    """Return the child whose link task this is; None if it is another task."""
    return Link.objects.filter(task_id=task_id).values_list("child_id", flat=True).first()


def family(execution_ids: Iterable[int]) -> dict[int, int]:
    """Return the level of each of these executions and of all their descendants, in id order. Unknown ids stay."""
    return _levels(execution_ids, "parent_id", "child_id", 1)


def ancestors(execution_ids: Iterable[int]) -> dict[int, int]:
    """Return the level of each ancestor of these executions, in id order: all are below 0."""
    return _levels(execution_ids, "child_id", "parent_id", -1)


def _levels(execution_ids: Iterable[int], near: str, far: str, step: int) -> dict[int, int]:
    """Follow the links from `near` to `far`. It ends, because a child has a higher id than its parent."""
    at, level, levels = set(execution_ids), 0, dict[int, int]()
    while at:
        levels |= dict.fromkeys(at, level)
        at = set(Link.objects.filter(among(at, near)).values_list(far, flat=True))
        level += step
    return {pk: level for pk, level in sorted(levels.items()) if level or step > 0}


def lock_ancestors(execution_ids: Sequence[int]) -> list[Relative]:
    """Lock all ancestors of these executions, in id order, without their gates. A caller that locks the family as
    well does that next: the ids of ancestors are lower. What is deleted meanwhile is left out, with what is above
    it."""
    locked = _lock(ancestors(execution_ids))
    levels = ancestors(execution_ids)
    return [replace(one, level=levels[one.id]) for one in locked if one.id in levels]


def lock_family(execution_ids: Sequence[int]) -> list[Relative]:
    """Lock these executions and all their descendants, each with its gate, in id order; return those that exist.

    A child may be added meanwhile to an execution that is not locked yet; its id is higher. So look again until
    nothing new is found: nothing is added to an execution that is locked with its gate. A child whose parent was
    deleted meanwhile is left out. The caller may change each task of each of them, which takes its time.
    """
    allow_long_statements()
    locked: dict[int, Relative] = {}
    while True:
        levels = family(execution_ids)
        if not (found := _lock(levels.keys() - locked.keys())):
            return [replace(one, level=levels[one.id]) for one in locked.values() if one.id in levels]
        locked |= {one.id: one for one in found}
        run("lock_gates", execution_ids=[one.id for one in found])


def _lock(execution_ids: Collection[int]) -> list[Relative]:
    rows = Execution.objects.select_for_update(no_key=True).filter(among(execution_ids)).order_by("pk")
    return [Relative(row.pk, row.vendor_type, row.status) for row in rows]


def by_level(relatives: Iterable[Relative]) -> list[list[int]]:
    """Return the executions of each level, children before their parents."""
    levels = defaultdict(list)
    for one in relatives:
        levels[one.level].append(one.id)
    return [levels[level] for level in sorted(levels, reverse=True)]


def carry_up(ids: list[int] | str) -> None:
    """Bring the link tasks of these executions (`str`: the text of an array) to their status, in the transaction
    that has changed it, and mark the parents after its commit."""
    if not is_attached() and (parents := run("carry_up", ids=ids)):
        tell_touched_after_commit(parents)
