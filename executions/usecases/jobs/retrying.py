"""Retry: the jobs of an execution that failed are run once more, each in a new revision."""

from collections.abc import Iterable
from functools import partial

from django.db import transaction
from django.db.models import OuterRef, Subquery

from executions import signals
from executions.models import Job, Task
from executions.status import Status
from executions.usecases.creating import BATCH
from executions.usecases.jobs.uniqueness import lost_key, taken
from executions.usecases.reporting import Report, report


def retry_failed(execution_id: int) -> int:
    """Returns how many. The jobs after them in a chain, which were stopped for it, wait for their turn again. Each
    may begin as often as when it was new. A unique job is left out,
    with what comes after it, while another of its like is queued or running.

    What if the process dies before the commit: nothing happened. After it: recovery publishes.
    """
    with transaction.atomic():
        again = _failed_and_what_was_behind(execution_id)
        report(Report(job.task_id, Status.PENDING, job.task.status_revision + 1, "tried again") for job in again)
        runs = Task.objects.filter(pk=OuterRef("pk")).values("run_count")
        Job.objects.filter(pk__in=[job.pk for job in again]).update(published_at=None, runs_before=Subquery(runs))
        _take_keys_again(again)
        transaction.on_commit(partial(signals.recorded.send, sender=retry_failed, execution_id=execution_id))
    return len(again)


def _take_keys_again(jobs: Iterable[Job]) -> None:
    lost = [(job, key) for job in jobs if (key := lost_key(job))]
    for job, key in lost:
        job.unique_key = key
    Job.objects.bulk_update([job for job, _ in lost], ["unique_key"], batch_size=BATCH)


def _failed_and_what_was_behind(execution_id: int) -> list[Job]:
    jobs = Job.objects.select_related("task")
    found = _free(jobs.filter(task__execution_id=execution_id, task__status=Status.ERROR))
    again = {job.pk: job for job in found}
    while found:
        behind = jobs.filter(follows__in=[job.pk for job in found], task__status=Status.STOPPED)
        found = [job for job in _free(behind) if job.pk not in again]
        again |= {job.pk: job for job in found}
    return list(again.values())


def _free(jobs: Iterable[Job]) -> list[Job]:
    """Without those whose like is queued or running."""
    keys = {job.pk: lost_key(job) for job in jobs}
    held = taken(keys.values())
    return [job for job in jobs if not (keys[job.pk] and keys[job.pk] in held)]
