"""Retry: the jobs of an execution that failed are run once more, each in a new revision."""

from collections.abc import Sequence
from functools import partial

from django.db import transaction
from django.db.models import BooleanField, ExpressionWrapper, OuterRef, Q, Subquery

from executions.errors import NoSuchExecution
from executions.models import Execution, Task
from executions.quarantines import release
from executions.reports import Report, report
from executions.rollup import refresh
from executions.status import Status
from tasks.database import run
from tasks.jobs.lifecycle import publication
from tasks.jobs.lifecycle.unique_keys import lock_and_let_go, retry_on_conflict
from tasks.models.job import Job

IS_UNIQUE = ExpressionWrapper(Q(unique_key__isnull=False), output_field=BooleanField())


def retry_failed(execution_id: int) -> int:
    """Returns how many. The jobs after them in a chain, which were stopped for it, wait for their turn again. Each
    may begin as often as when it was new. A unique job is left out, with what comes after it, while another of its
    like is queued or running. The execution is Running when this returns.

    1. Lock the execution, so that of two retries the second finds what the first has left.
    2. Lock the tasks, and those of the jobs that hold the wanted keys, in id order. Decide under these locks.
    3. Write the tasks and the jobs, and refresh the execution; release it from quarantine before, because nothing
       in quarantine is refreshed. If the refresh fails, it is marked after the commit, as after any report.

    Rows are locked as everywhere: executions before tasks, tasks before jobs.

    What if the process dies before the commit: nothing happened. After it: recovery publishes.
    """
    return retry_on_conflict(partial(_retry_failed, execution_id))


def _retry_failed(execution_id: int) -> int:
    execution = Execution.objects.select_for_update(no_key=True).filter(pk=execution_id)
    if execution.values_list("pk", flat=True).first() is None:
        raise NoSuchExecution(f"there is no execution {execution_id}")
    again = _locked_for_another_try(execution_id)
    if not again:
        return 0
    report(Report(job.task_id, Status.PENDING, job.task.status_revision + 1, "tried again") for job in again)
    runs = Task.objects.filter(pk=OuterRef("pk")).values("run_count")
    Job.objects.filter(pk__in=[job.pk for job in again]).update(
        published_at=None, runs_before=Subquery(runs), holds_key=IS_UNIQUE
    )
    release([execution_id])
    refresh([execution_id])
    transaction.on_commit(partial(publication.publish_after_commit, execution_id=execution_id))
    return len(again)


def _locked_for_another_try(execution_id: int) -> list[Job]:
    """Looked for twice: to know what to lock, and again under the locks."""
    seen = _find(execution_id)
    unique = Job.objects.filter(pk__in=seen, unique_key__isnull=False)
    keys = dict(unique.values_list("pk", "unique_key"))
    locked, held = lock_and_let_go(keys.values(), seen)
    free = [pk for pk in locked if keys.get(pk) not in held]
    found = _find(execution_id, free)
    return list(Job.objects.select_related("task").filter(pk__in=found).order_by("pk"))


def _find(execution_id: int, among: Sequence[int] | None = None) -> list[int]:
    return [pk for (pk,) in run("find_failed_jobs", execution_id=execution_id, among=among)]
