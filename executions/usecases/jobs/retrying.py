"""Retry: the jobs of an execution that failed are run once more, each in a new revision."""

from functools import partial

from django.db import transaction

from executions import signals
from executions.models import Job
from executions.status import Status
from executions.usecases.reporting import Report, report


def retry_failed(execution_id: int) -> int:
    """Returns how many. The jobs after them in a chain, which were stopped for it, wait for their turn again."""
    with transaction.atomic():
        failed = Job.objects.select_related("task").filter(
            task__execution_id=execution_id, task__status=Status.ERROR
        )
        again = {job.pk: job for job in failed}
        rest = list(again)
        while rest:
            behind = Job.objects.select_related("task").filter(follows__in=rest, task__status=Status.STOPPED)
            rest = [job.pk for job in behind if job.pk not in again]
            again |= {job.pk: job for job in behind}
        report(
            Report(job.task_id, Status.PENDING, job.task.status_revision + 1, "tried again")
            for job in again.values()
        )
        Job.objects.filter(pk__in=again).update(published_at=None)
        transaction.on_commit(partial(signals.recorded.send, sender=retry_failed, execution_id=execution_id))
    return len(again)
