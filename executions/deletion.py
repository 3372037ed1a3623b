"""Delete executions, with their tasks and their history."""

from collections.abc import Callable, Iterable, Sequence

from django.db import transaction

from executions.database import run
from executions.errors import NoSuchExecution, NotFinal
from executions.models import Execution, Quarantine, ShortenedHistory, StatusChange, Task
from executions.news import tell_deleted_after_commit
from executions.status import CODES, FINAL_CODE
from executions.tombstones import delete_tasks


def delete(execution_ids: Iterable[int]) -> int:
    """Delete executions, table by table; return how many existed. A constraint of the table of jobs deletes the
    jobs of their tasks, so none of these jobs begins any more. After the commit, running jobs are asked to stop.
    Each task leaves a tombstone, so that senders of late reports are told to stop trying.

    Rows are locked in the usual order: executions before tasks, each in id order.

    If a mark or a claim of a deleted execution is left, the worker that takes it completes it silently. A refresh
    that holds the row's lock ends first; a later refresh finds nothing.
    """
    ids = list(execution_ids)
    with transaction.atomic():
        locked = list(
            Execution.objects.select_for_update().filter(pk__in=ids).order_by("pk").values_list("pk", flat=True)
        )
        run("lock_tasks", ids=locked)
        unfinished = Task.objects.filter(execution_id__in=locked, status_code__lt=FINAL_CODE).exclude(job_id="")
        _delete_locked(locked, unfinished.values_list("job_id", flat=True))
    return len(locked)


def delete_ended(execution_id: int) -> None:
    """Delete an execution whose tasks have ended. Raises NotFinal if one has not: it is to be stopped first.

    The lock of the execution's row comes first, so no task is added in between. A task that begins another run in
    between is deleted, and its job is asked to stop, as by `delete`.
    """
    with transaction.atomic():
        if not Execution.objects.select_for_update().filter(pk=execution_id).exists():
            raise NoSuchExecution(execution_id)
        unfinished = Task.objects.filter(execution_id=execution_id, status_code__lt=FINAL_CODE).count()
        if unfinished:
            raise NotFinal(f"{unfinished:,} of its tasks have not ended: stop execution {execution_id} first")
        delete([execution_id])


def delete_many_ended(execution_ids: Iterable[int]) -> list[int]:
    """Delete those of the executions that have ended; return them. The others stay: they have a task that is not
    final, or they have no tasks and are not final themselves.

    Which have ended is decided under the locks that `delete` takes as well, so no task can be added or run again
    in between.
    """
    ids = list(execution_ids)
    with transaction.atomic():
        locked = Execution.objects.select_for_update().filter(pk__in=ids).order_by("pk")
        statuses = dict(locked.values_list("pk", "status"))
        codes = {pk: CODES.get(status, FINAL_CODE) for pk, status in statuses.items()}
        codes |= dict(run("lock_tasks", ids=list(statuses)))
        ended = [pk for pk, code in codes.items() if code == FINAL_CODE]
        _delete_locked(ended, ())
    return ended


def delete_final(execution_ids: Sequence[int], fence: Callable[[], None] = lambda: None) -> tuple[int, int]:
    """Delete those of these executions that have ended, in one transaction that waits for no lock; return how
    many executions and how many tasks it deleted.

    It leaves out an execution that is not final, that has a task that is not final, or that another transaction
    has locked, or one of its tasks. `fence` raises if the caller has lost the right to delete. It is called
    first, in the same transaction.

    What if the process dies: the transaction is rolled back, and nothing is deleted. What if two processes do
    it at once: each deletes the rows that it locked first.
    """
    if not execution_ids:
        return 0, 0
    with transaction.atomic():
        fence()
        locked = run("lock_final_executions", ids=list(execution_ids))[0][0]
        free, tasks = run("lock_final_tasks", ids=locked)[0]
        _delete_locked(free, ())
    return len(free), tasks


def _delete_locked(ids: Sequence[int], job_ids: Iterable[str]) -> None:
    """Delete these executions, which this transaction has locked together with all their tasks. `job_ids` are
    those of their unfinished tasks."""
    if not ids:
        return
    tell_deleted_after_commit(ids, job_ids)
    delete_tasks(list(ids))
    for model in (StatusChange, ShortenedHistory, Quarantine):
        model._default_manager.filter(execution_id__in=ids)._raw_delete(using="default")
    Execution.objects.filter(pk__in=ids)._raw_delete(using="default")
