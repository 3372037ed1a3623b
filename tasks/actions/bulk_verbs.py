"""The verbs of actions: what each does with a few executions, in one transaction, by the use cases for one.

Each verb is idempotent, so executions whose transaction was lost are done again.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Count

from executions.action_lease import Done
from executions.deletion import delete_many_ended
from executions.errors import NoSuchExecution
from executions.models import Execution, Task
from executions.models.action import Verb
from executions.news import tell_changed_after_commit
from executions.rollup import refresh
from executions.status import Status
from tasks.jobs.lifecycle.job_stops import stop_jobs_of
from tasks.jobs.lifecycle.retries import retry_failed


@dataclass(frozen=True)
class BulkVerb:
    """`act` works on a portion of a page: executions whose weights are `heaviest` in sum, so a transaction holds
    its locks for a short time. A heavier execution is a portion by itself."""

    act: Callable[[Sequence[int]], Done]
    weights: Callable[[Sequence[int]], Mapping[int, int]]
    page: int
    heaviest: int


def _stop(ids: Sequence[int]) -> Done:
    changed = len(stop_jobs_of(ids).executions)
    return Done(changed, skipped=len(ids) - changed)


def _retry(ids: Sequence[int]) -> Done:
    changed = sum(map(_is_retried, _with_failed_jobs(ids)))
    return Done(changed, skipped=len(ids) - changed)


def _is_retried(execution_id: int) -> bool:
    try:
        return retry_failed(execution_id) > 0
    except NoSuchExecution:  # it was deleted meanwhile
        return False


def _refresh(ids: Sequence[int]) -> Done:
    """Refresh now. Rows that another transaction holds are marked and not waited for; so are rows that cannot be
    refreshed, which the queue tries again, and sets aside in the end."""
    outcome = refresh(ids, wait=False)
    later = Execution.objects.filter(pk__in=[*outcome.locked, *outcome.failed])
    tell_changed_after_commit(later.values_list("pk", "vendor_type"))
    errors = [f"execution {pk}: {reason}" for pk, reason in outcome.failed.items()]
    return Done(outcome.changed, len(ids) - outcome.changed - len(errors), len(errors), errors)


def _delete(ids: Sequence[int]) -> Done:
    changed = len(delete_many_ended(ids))
    return Done(changed, skipped=len(ids) - changed)


def _tasks(ids: Sequence[int]) -> Mapping[int, int]:
    """Weigh each execution by its tasks, from the index task_rollup alone."""
    tasks = Task.objects.filter(execution_id__in=ids).order_by().values_list("execution_id")
    return dict(tasks.annotate(Count("pk")))


def _with_failed_jobs(ids: Sequence[int]) -> Mapping[int, int]:
    """Weigh each execution by whether a retry has anything to do."""
    failed = Task.objects.filter(execution_id__in=ids, status=Status.ERROR, job__isnull=False).order_by(
        "execution_id"
    )
    return dict.fromkeys(failed.values_list("execution_id", flat=True).distinct(), 1)


VERBS: Mapping[str, BulkVerb] = {
    Verb.STOP: BulkVerb(_stop, _tasks, page=500, heaviest=20_000),
    # one execution with failed jobs in a transaction: a retry locks tasks of other executions that hold unique
    # keys, so several in one transaction would not lock in the usual order
    Verb.RETRY: BulkVerb(_retry, _with_failed_jobs, page=500, heaviest=1),
    Verb.REFRESH: BulkVerb(_refresh, _tasks, page=1_000, heaviest=100_000),
    Verb.DELETE: BulkVerb(_delete, _tasks, page=200, heaviest=20_000),
}
