"""The jobs of one execution, with what Redis knows of each at this moment."""

from collections.abc import Iterable
from dataclasses import dataclass

from harbor_refresh.executions.status import CODES, Status, is_final
from harbor_refresh.tasks.jobs.overview.inspection import JobInspection, inspect_jobs
from harbor_refresh.tasks.models.job import Job


@dataclass(frozen=True)
class InspectedJob:
    """`seen` is None if Redis has no record of the job: it has ended, or has not begun."""

    job: Job
    seen: JobInspection | None


def running_jobs(execution_id: int, most: int) -> list[InspectedJob]:
    """Return its jobs that run, the oldest first: one query, which the index task_rollup answers, and two commands
    to Redis. Raises QueueUnavailable."""
    rows = Job.objects.select_related("task").filter(
        task__execution_id=execution_id, task__status_code=CODES[Status.RUNNING]
    )
    return inspected(rows.order_by("pk")[:most])


def inspected(jobs: Iterable[Job]) -> list[InspectedJob]:
    """Ask Redis about those of the jobs that have not ended. Raises QueueUnavailable."""
    jobs = list(jobs)
    seen = inspect_jobs([job.task.job_id for job in jobs if not is_final(job.task.status)])
    return [InspectedJob(job, seen.get(job.task.job_id)) for job in jobs]
