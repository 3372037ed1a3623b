"""Many executions with tasks and jobs, written as their use cases would write them, and quickly."""

from collections.abc import Sequence

from django.utils import timezone

from harbor_refresh.executions.lifecycle.creation import NewExecution, NewTask
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.models import Execution, Task
from harbor_refresh.executions.queries.chosen_pages import BULK
from harbor_refresh.tasks.broker.celery_queues import JOBS
from harbor_refresh.tasks.models.job import Job, JobState
from tests.created import create_many

#: A queue of no worker. One that has the queue sends overdue jobs again, and ends them, as it knows no such task.
ELSEWHERE = "elsewhere"


def with_jobs(count: int, vendor: str = "SCAN", tasks: int = 1, queue: str = JOBS) -> list[Execution]:
    """Executions of jobs that were sent."""
    executions = create_many(
        NewExecution(vendor, tasks=[NewTask(f"{vendor}-{number}-{task}") for task in range(tasks)])
        for number in range(count)
    )
    rows = Task.objects.filter(execution__in=executions)
    Job.objects.bulk_create(sent(pk, queue) for pk in rows.values_list("pk", flat=True))
    return executions


def sent(task_id: int, queue: str = JOBS) -> Job:
    """A job of this task that was sent."""
    now = timezone.now()
    return Job(task_id=task_id, name="a.job", queue=queue, max_attempts=3, state=JobState.SENT, sent_at=now)


def reported(executions: Sequence[Execution], status: str) -> None:
    """All their tasks ended so, and they were refreshed."""
    ids = [one.pk for one in executions]
    tasks = Task.objects.filter(execution_id__in=ids)
    report(Report(pk, status, revision + 1) for pk, revision in tasks.values_list("pk", "status_revision"))
    refresh(ids)


def statuses() -> dict[str, int]:
    """Of all executions but actions."""
    found: dict[str, int] = {}
    for status in Execution.objects.exclude(vendor_type=BULK).values_list("status", flat=True):
        found[status] = found.get(status, 0) + 1
    return found
