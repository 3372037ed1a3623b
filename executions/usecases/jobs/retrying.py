"""Retry: the jobs of an execution that failed are run once more, each in a new revision."""

from functools import partial

from django.db import transaction
from django.db.models import OuterRef, Subquery

from executions import signals
from executions.models import Job, Task
from executions.queue import job_records
from executions.status import Status
from executions.usecases.reporting import Report, report


def retry_failed(execution_id: int) -> int:
    """Returns how many. The jobs after them in a chain, which were stopped for it, wait for their turn again. Each
    may begin as often as when it was new, and whatever stopped it before is forgotten.

    What if the process dies before the commit: nothing happened, but that stops are forgotten of jobs that had
    ended. After it: whoever repairs publishes.
    """
    with transaction.atomic():
        again = _failed_and_what_was_behind(execution_id)
        job_records().forget_stops([job.task.job_id for job in again])
        report(Report(job.task_id, Status.PENDING, job.task.status_revision + 1, "tried again") for job in again)
        runs = Task.objects.filter(pk=OuterRef("pk")).values("run_count")
        Job.objects.filter(pk__in=[job.pk for job in again]).update(published_at=None, runs_before=Subquery(runs))
        transaction.on_commit(partial(signals.recorded.send, sender=retry_failed, execution_id=execution_id))
    return len(again)


def _failed_and_what_was_behind(execution_id: int) -> list[Job]:
    failed = Job.objects.select_related("task").filter(task__execution_id=execution_id, task__status=Status.ERROR)
    again = {job.pk: job for job in failed}
    rest = list(again)
    while rest:
        behind = Job.objects.select_related("task").filter(follows__in=rest, task__status=Status.STOPPED)
        rest = [job.pk for job in behind if job.pk not in again]
        again |= {job.pk: job for job in behind}
    return list(again.values())
