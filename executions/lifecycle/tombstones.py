"""Tombstones of deleted tasks: a report about a task that is gone is told from one whose task is not there yet."""

from collections.abc import Sequence
from datetime import timedelta

from django.db.models import Q
from django.db.models.functions import Now

from harbor_refresh.executions.database import delete_first, run
from harbor_refresh.executions.models import DeletedTask

#: No sender tries for longer than this to report about one task.
KEPT = timedelta(days=7)
BATCH = 10_000


def delete_tasks(execution_ids: list[int]) -> None:
    """Delete the tasks of these executions and leave their tombstones; the caller holds the locks. Each call
    forgets as many old tombstones as a page of executions leaves, so they stay bounded without a sweep, too."""
    run("delete_tasks", execution_ids=execution_ids)
    delete_first(DeletedTask.objects.filter(at__lt=Now() - KEPT).order_by("at"), BATCH)


def is_deleted(task_id: int, job_ids: Sequence[str]) -> bool:
    """Whether this task, or a task of one of these jobs, is known to be deleted."""
    of_jobs = Q(job_id__in=[job for job in job_ids if job]) & ~Q(job_id="")  # as the index is
    return DeletedTask.objects.filter(Q(pk=task_id) | of_jobs).exists()
