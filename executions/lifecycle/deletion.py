"""Delete executions, with their tasks and their history.

Every transaction that needs several locks takes them in one order, so none waits in a circle:

1. executions, in id order (a refresh needs these alone, and a retry, a stop and an added task begin with one);
2. their tasks, in id order (a report needs these alone);
3. their jobs, which the database deletes with their tasks;
4. their changes that are not told, and their rows in quarantine, each in id order.

The sweep takes 1 and 2, and leaves out what it would have to wait for (`delete_final`).
"""

from collections.abc import Iterable, Sequence

from django.apps import apps
from django.db import connection, transaction
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Now

from harbor_refresh.executions.attached.ownership import Operation, refuse_if_attached
from harbor_refresh.executions.database import allow_long_statements, run
from harbor_refresh.executions.errors import NoSuchExecution, NotFinal, StillReferenced
from harbor_refresh.executions.lifecycle.reports import Report, Source, report
from harbor_refresh.executions.models import (
    Addition,
    Callback,
    DeletedTask,
    Delivery,
    Execution,
    Gate,
    Link,
    Quarantine,
    StatusChange,
    Task,
    VendorKey,
)
from harbor_refresh.executions.models.notifications import Kind, State
from harbor_refresh.executions.status import CODES, FINAL, FINAL_CODE, Status

#: The message of a task whose child was deleted.
DELETED = "its execution was deleted"


def delete_ended(execution_id: int) -> None:
    """Delete an execution that has ended, as `delete_many_ended` does. Raises NoSuchExecution, NotFinal if it is
    to be stopped first, or StillReferenced if a row of another program names it. A row that names it and is added
    at this moment waits for the lock, and is refused then."""
    refuse_if_attached(Operation.DELETE)
    with transaction.atomic():
        locked = _lock([execution_id])
        if not locked:
            raise NoSuchExecution(execution_id)
        if not locked[execution_id]:
            raise NotFinal(f"execution {execution_id} has not ended: stop it, or finish it if it has no tasks")
        if column := referenced([execution_id]).get(execution_id):
            raise StillReferenced(
                f"execution {execution_id} stays, because a row names it in {column}: "
                "delete that row first, or let it name no execution"
            )
        _delete_locked(locked)


def delete_many_ended(execution_ids: Iterable[int]) -> list[int]:
    """Delete those of the executions that have ended; return them. The others have a task that is not final, or no
    tasks and no final status, or a row of another program names them. This is decided under the locks of rows and
    tasks, so no task is added or run again in between."""
    refuse_if_attached(Operation.DELETE)
    with transaction.atomic():
        ended = [pk for pk, has_ended in _lock(execution_ids).items() if has_ended]
        named = referenced(ended)
        free = [pk for pk in ended if pk not in named]
        _delete_locked(free)
    return free


def delete_final(execution_ids: Sequence[int]) -> tuple[int, int]:
    """Delete those of these executions that have ended, in one transaction that waits for no lock; return how
    many executions and how many tasks it deleted. Two at once: each deletes the rows that it locked first.

    It leaves out an execution that is not final, that has a task that is not final, or that another transaction
    has locked, or one of its tasks. The lock of an execution keeps tasks from being added, so the next statement,
    with its newer snapshot, sees every task.
    """
    refuse_if_attached(Operation.DELETE)
    with transaction.atomic():
        final = Execution.objects.filter(pk__in=execution_ids, status__in=FINAL).order_by("pk")
        locked = list(final.select_for_update(skip_locked=True).values_list("pk", flat=True))
        free, tasks = run("locks/lock_final_tasks", ids=locked)[0] if locked else ([], 0)
        _delete_locked(free)
    return len(free), tasks


def _lock(execution_ids: Iterable[int]) -> dict[int, bool]:
    """Lock these executions with all that is deleted with them; return whether each has ended, in id order."""
    allow_long_statements()
    rows = Execution.objects.select_for_update().filter(pk__in=list(execution_ids)).order_by("pk")
    codes = {pk: CODES.get(status, FINAL_CODE) for pk, status in rows.values_list("pk", "status")}
    ids = list(codes)
    codes |= dict(run("locks/lock_tasks", ids=ids))
    for others in (StatusChange.objects.filter(told=False), Quarantine.objects.all()):
        list(others.select_for_update().filter(execution_id__in=ids).order_by("pk").values_list("pk"))
    return {pk: code == FINAL_CODE for pk, code in codes.items()}


def referenced(execution_ids: Sequence[int]) -> dict[int, str]:
    """Return those of the executions that rows of the project, or of another program, name, and the table and
    column that name each. PostgreSQL refuses to delete them, whatever `on_delete` the ForeignKey has: only the
    deletes of Django itself carry that out."""
    found: dict[int, str] = {}
    ours = [model._meta.db_table for model in apps.get_app_config(Execution._meta.app_label).get_models()]
    for column, query in run("find_references", ours=ours) if execution_ids else ():
        with connection.cursor() as cursor:
            cursor.execute(query, [list(execution_ids)])
            found |= {pk: column for (pk,) in cursor.fetchall()}
    return dict(sorted(found.items()))


def _delete_locked(locked: Iterable[int]) -> None:
    """Delete these executions, which this transaction has locked with all their tasks; tombstones stay.

    Callbacks with a delivery that is not made yet stay, and are noted as orphans, so that they are still called.
    """
    if not (ids := list(locked)):
        return
    _end_links(ids)
    run("delete_tasks", execution_ids=ids)
    waiting = Delivery.objects.filter(
        subscription__kind=Kind.CALLBACK,
        subscription__handler=OuterRef("handler"),
        execution_id=OuterRef("execution_id"),
    ).exclude(state=State.DELIVERED)
    callbacks = Callback.objects.filter(execution_id__in=ids)
    callbacks.filter(Exists(waiting)).update(orphaned_at=Now())
    callbacks.filter(orphaned_at=None)._raw_delete(using="default")
    for model in (StatusChange, Quarantine, Gate, Addition, VendorKey):
        model._default_manager.filter(execution_id__in=ids)._raw_delete(using="default")
    Execution.objects.filter(pk__in=ids)._raw_delete(using="default")


def _end_links(ids: Sequence[int]) -> None:
    """End the link tasks of executions that are being deleted, because nothing else would, and forget their links:
    link tasks first, as a deletion of the parent does. Their own children go on, and have no parent any more."""
    links = Link.objects.filter(child_id__in=ids).exclude(parent_id__in=ids)
    tasks = Task.objects.filter(pk__in=links.values("task_id"), status_code__lt=FINAL_CODE).order_by("pk")
    going = tasks.select_for_update(no_key=True)
    report((Report(one.pk, Status.STOPPED, one.status_revision, DELETED) for one in going), Source.STOP)
    for relation in ("child_id__in", "parent_id__in"):
        Link.objects.filter(**{relation: ids})._raw_delete(using="default")


def is_deleted(task_id: int, job_ids: Sequence[str]) -> bool:
    """Whether this task, or a task of one of these jobs, is known to be deleted."""
    of_jobs = Q(job_id__in=[job for job in job_ids if job]) & ~Q(job_id="")  # as the index is
    return DeletedTask.objects.filter(Q(pk=task_id) | of_jobs).exists()
