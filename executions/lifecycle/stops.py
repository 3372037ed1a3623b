"""Stop executions, or one task: what is unfinished becomes Stopped, and each status is refreshed at once. And set
the final status of an execution without tasks by hand."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Exists, F, OuterRef
from django.db.models.functions import Now

from harbor_refresh.executions.attached.ownership import Operation, refuse_if_attached
from harbor_refresh.executions.database import run
from harbor_refresh.executions.errors import AlreadyFinal, HasTasks, NoSuchExecution, NoSuchTask
from harbor_refresh.executions.lifecycle import links
from harbor_refresh.executions.lifecycle.quarantines import release
from harbor_refresh.executions.lifecycle.reports import Report, Source, report
from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.models import Execution, StatusChange, Subscription, Task
from harbor_refresh.executions.news.after_commit import (
    tell_changes_written_after_commit,
    tell_touched_after_commit,
)
from harbor_refresh.executions.status import Status, is_final


@dataclass(frozen=True)
class Stopped:
    """`found` of the executions exist. `executions` had not ended, and `tasks` of their tasks were stopped."""

    found: int
    tasks: int
    executions: Sequence[int]


def stop(execution_id: int) -> int:
    """Stop one execution, as `stop_many` does. Return how many tasks it stopped."""
    stopped = stop_many([execution_id])
    if not stopped.found:
        raise NoSuchExecution(execution_id)
    return stopped.tasks


def stop_many(
    execution_ids: Sequence[int],
    message: str | None = None,
    spared: Callable[[list[int]], list[int]] = lambda _: [],
) -> Stopped:
    """Stop the tasks that are not final, and refresh in the same transaction. Unknown ids are left out. `message`
    says why, in the tasks that are stopped and in those of the executions that had not ended. `spared` returns the
    tasks of these executions, which are locked, that go on.

    An execution without tasks that is not final becomes Stopped itself. A later report changes a stopped task only
    if its revision is newer. Executions are locked before tasks, each in id order, as in `delete_ended`. Their
    descendants are stopped with them, and refreshed before them. Executions in quarantine are released in the same
    transaction, because nothing in quarantine is refreshed. If a refresh fails again, its execution is marked like
    any other.

    A task that is added meanwhile is stopped as well, or refused: `creation.hold_open` holds the gate of an open
    execution, which this locks before it looks for tasks, or takes the same lock as this.
    """
    refuse_if_attached(Operation.STOP)
    given = set(execution_ids)
    with transaction.atomic():
        family = {one.pk: one for one in links.lock_family(execution_ids)}
        going = [one.pk for one in family.values() if not is_final(one.status)]
        release(family)
        words = {"execution_ids": list(family), "message": message, "spared": spared(list(family))}
        stopped: dict[int, int] = dict(run("stop_tasks", **words))
        tasks = Task.objects.filter(execution_id=OuterRef("pk"))
        empty = set(Execution.objects.filter(~Exists(tasks), pk__in=going).values_list("pk", flat=True))
        for ids in links.by_level(family):
            outcome = refresh(ids)
            tell_touched_after_commit((pk, family[pk].vendor_type) for pk in outcome.failed)
            end([pk for pk in ids if pk in empty], Status.STOPPED)
        if message is not None and (stopped or empty):
            Execution.objects.filter(pk__in=given.intersection(going)).update(status_message=message)
        changed = {*stopped, *empty}
        changed |= links.ancestors(changed) & set(going)  # those above a child that was stopped
    return Stopped(len(given & family.keys()), sum(stopped.values()), sorted(changed & given))


def stop_task(task_id: int) -> bool:
    """Stop one task, or the child that it stands for. False if it has ended already. Its execution is refreshed
    after the commit; one in quarantine is released before. The rows are locked before the task is reported, so
    that it is the current run that stops."""
    refuse_if_attached(Operation.STOP)
    if child := links.child_of_task(task_id):
        return bool(stop_many([child]).executions)
    with transaction.atomic():
        Execution.objects.select_for_update(no_key=True, of=("self",)).filter(tasks=task_id).first()
        task = Task.objects.select_for_update(no_key=True).filter(pk=task_id).first()
        if task is None:
            raise NoSuchTask(task_id)
        if is_final(task.status):
            return False
        release([task.execution_id])
        return report([Report(task_id, Status.STOPPED, task.status_revision)], Source.STOP).applied == 1


def finish(execution_id: int, status: str, message: str = "") -> None:
    """Set the final status under the execution's lock, so that of two concurrent calls only the first sets it."""
    refuse_if_attached(Operation.FINISH)
    with transaction.atomic():
        execution = Execution.objects.select_for_update().filter(pk=execution_id).first()
        if execution is None:
            raise NoSuchExecution(execution_id)
        if execution.tasks.exists():
            raise HasTasks(
                f"execution {execution_id} has tasks: its status follows from them. "
                "Report the tasks, or stop the execution"
            )
        if is_final(execution.status):
            raise AlreadyFinal(f"execution {execution_id} is {execution.status} already")
        end([execution_id], status, message)


def end(execution_ids: Sequence[int], status: str, message: str = "") -> None:
    """Write this final status. The caller has locked these executions, which have no tasks and have not ended."""
    if not execution_ids:
        return
    executions = Execution.objects.filter(pk__in=execution_ids)
    told = not Subscription.objects.filter(enabled=True, missing_since=None).exists()
    changes = {"to_status": status, "at": Now(), "told": told}
    StatusChange.objects.bulk_create(
        StatusChange(execution=one, revision=one.revision + 1, from_status=one.status, **changes)
        for one in executions
    )
    executions.update(
        status=status, status_message=message, end_time=Now(), revision=F("revision") + 1, update_time=Now()
    )
    links.carry_up(list(execution_ids))
    if not told:
        tell_changes_written_after_commit()
