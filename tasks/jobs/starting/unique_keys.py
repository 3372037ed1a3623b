"""The keys of unique jobs. A constraint lets one job with a key be queued or running. The end of a job frees its
key in the same transaction, so no crash can leave a key taken."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from django.db import IntegrityError, OperationalError, transaction

from harbor_refresh.executions.database import sqlstate, violates
from harbor_refresh.executions.errors import Contended
from harbor_refresh.tasks.models.job import Job, JobState

#: How often a transaction that takes keys is tried.
TRIES = 3
DEADLOCK = "40P01"

Result = TypeVar("Result")


def held(keys: Iterable[str | None]) -> set[str | None]:
    """Return those of the keys that a queued or running job has. If two processes take a key at once, both may
    find it free: the constraint lets one of them write, see `retry_on_conflict`."""
    alive = Job.objects.filter(unique_key__in={key for key in keys if key}).exclude(state=JobState.ENDED)
    return set(alive.values_list("unique_key", flat=True))


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
