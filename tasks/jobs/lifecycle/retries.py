"""Retries: run the failed jobs of an execution once more, each in a new revision."""

import time
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
from tasks.jobs.lifecycle.unique_keys import lock_and_release, retry_on_conflict
from tasks.jobs.revisions import next_revision
from tasks.models.job import Job

IS_UNIQUE = ExpressionWrapper(Q(unique_key__isnull=False), output_field=BooleanField())


def retry_failed(execution_id: int) -> int:
    """Retry the failed jobs of the execution, and return how many. Jobs after them in a chain, which were stopped
    with them, wait for their turn again. Each job may begin as often as a new one. A unique job is left out, with
    the jobs after it, while another job with its key is queued or running. The execution is Running when this
    returns.

    1. Lock the execution, so that the second of two retries sees what the first has left.
    2. Lock the tasks, and those of the jobs that hold the wanted keys, in id order. Decide under these locks.
    3. Write the tasks and the jobs, and refresh the execution. Release it from quarantine before, because a
       quarantined execution is not refreshed. If the refresh fails, it is marked after the commit, as after any
       report.

    Rows are locked in the usual order: executions before tasks, tasks before jobs.

    What if the process dies before the commit: nothing happened. After it: recovery publishes.
    """
    return retry_on_conflict(partial(_retry_failed, execution_id))


def _retry_failed(execution_id: int) -> int:
    execution = Execution.objects.select_for_update(no_key=True).filter(pk=execution_id)
    if execution.values_list("pk", flat=True).first() is None:
        raise NoSuchExecution(execution_id)
    again = _locked_for_another_try(execution_id)
    if not again:
        return 0
    now = time.time()
    report(
        Report(job.task_id, Status.PENDING, next_revision(job.task.status_revision, now), "tried again")
        for job in again
    )
    runs = Task.objects.filter(pk=OuterRef("pk")).values("run_count")
    Job.objects.filter(pk__in=[job.pk for job in again]).update(
        published_at=None, runs_before=Subquery(runs), holds_key=IS_UNIQUE
    )
    release([execution_id])
    refresh([execution_id])
    transaction.on_commit(partial(publication.publish_after_commit, execution_id=execution_id))
    return len(again)


def _locked_for_another_try(execution_id: int) -> list[Job]:
    """Find the jobs twice: first to know what to lock, then again under the locks."""
    wanted = _find(execution_id)
    unique = Job.objects.filter(pk__in=wanted, unique_key__isnull=False)
    keys = dict(unique.values_list("pk", "unique_key"))
    locked, held = lock_and_release(keys.values(), wanted)
    free = [pk for pk in locked if keys.get(pk) not in held]
    found = _find(execution_id, free)
    return list(Job.objects.select_related("task").filter(pk__in=found).order_by("pk"))


def _find(execution_id: int, among: Sequence[int] | None = None) -> list[int]:
    return [pk for (pk,) in run("find_failed_jobs", execution_id=execution_id, among=among)]
