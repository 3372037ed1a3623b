"""The keys of unique jobs. A job holds its key until its task is final and another job wants the key. The end of
the job releases nothing, so no crash can leave a key taken."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from django.db import IntegrityError, OperationalError, transaction

from harbor_refresh.executions.database import sqlstate, violates
from harbor_refresh.executions.errors import Contended
from harbor_refresh.tasks.jobs.database import run
from harbor_refresh.tasks.models.job import Job

#: How often a transaction that takes keys is tried.
TRIES = 3
DEADLOCK = "40P01"

Result = TypeVar("Result")


def lock_and_release(
    keys: Iterable[str | None], task_ids: Sequence[int] = ()
) -> tuple[list[int], set[str | None]]:
    """Lock the final tasks among these and among the holders of the keys; release the keys of their jobs.

    Returns the locked tasks, and the keys that are still held because their jobs are queued or running.

    1. One statement locks the tasks, in id order.
    2. The next statement releases the keys. Its snapshot is newer than the locks, and nothing can run these tasks
       again before the transaction ends.
    3. A last query reads which keys are held. A key that another job has taken meanwhile counts as held.

    If two processes do it at once, then the second waits for the tasks, finds that they are no longer final or
    that their jobs have lost the keys, and sees the new holders in 3. If no job held a key, there was nothing to
    wait for: the constraint lets one of the two write, see `retry_on_conflict`.
    """
    wanted = sorted({key for key in keys if key})
    if not wanted and not task_ids:
        return [], set()
    locked = [pk for (pk,) in run("lock_final_tasks", task_ids=list(task_ids), keys=wanted)]
    if not wanted:
        return locked, set()
    holders = Job.objects.filter(unique_key__in=wanted, holds_key=True)
    holders.filter(pk__in=locked).update(holds_key=False)
    return locked, set(holders.values_list("unique_key", flat=True))


def retry_on_conflict(work: Callable[[], Result], tries: int = TRIES) -> Result:
    """Do this work in a transaction of its own. Do it again if another transaction has taken one of its keys at
    the same moment, or if the two are in a deadlock. Raises Contended if that happens each time."""
    for _ in range(tries):
        try:
            with transaction.atomic():
                return work()
        except (IntegrityError, OperationalError) as exc:
            if not (sqlstate(exc) == DEADLOCK or violates(exc, "job_unique")):
                raise
            conflict = exc
    raise Contended from conflict
