"""The keys of unique jobs. A job holds its key until its task is final and another job wants the key. The end of
the job releases nothing, so no crash can leave a key taken."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from django.db import IntegrityError, OperationalError, transaction

from harbor_refresh.executions.database import among, sqlstate, violates
from harbor_refresh.executions.errors import Contended
from harbor_refresh.executions.models import Task
from harbor_refresh.executions.status import FINAL_CODE
from harbor_refresh.tasks.models.job import Job

#: How often a transaction that takes keys is tried.
TRIES = 3
DEADLOCK = "40P01"

Result = TypeVar("Result")


def lock_and_release(
    keys: Iterable[str | None], task_ids: Sequence[int] = ()
) -> tuple[list[int], set[str | None]]:
    """Lock the final tasks among these and among the holders of the keys; release the keys of their jobs.

    Returns the locked tasks, and the keys that a job which is queued or running holds, also one that took its key
    after the locks.

    The keys are released in a statement whose snapshot is newer than the locks. If two processes do it at once,
    then the second waits for the tasks, finds that they are no longer final or that their jobs have lost the keys,
    and sees the new holders. If no job held a key, there was nothing to wait for: the constraint lets one of the
    two write, see `retry_on_conflict`.
    """
    wanted = sorted({key for key in keys if key})
    holders = Job.objects.filter(unique_key__in=wanted, holds_key=True)
    ids = {*task_ids, *holders.values_list("pk", flat=True)}
    final = Task.objects.filter(among(ids), status_code=FINAL_CODE).order_by("pk")
    locked = list(final.select_for_update(no_key=True).values_list("pk", flat=True)) if ids else []
    holders.filter(among(locked)).update(holds_key=False)
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
