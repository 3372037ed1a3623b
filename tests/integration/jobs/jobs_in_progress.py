"""Jobs that were started, and records of them under the real clock."""

from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.models import Execution, Task
from harbor_refresh.tasks.jobs.lifecycle.job_creation import NewJob, start
from harbor_refresh.tasks.jobs.records.record import Acknowledged, JobRecord
from harbor_refresh.tasks.jobs.records.records import job_records
from tests.integration.redis_state import Redis


def started(*jobs: str, vendor: str = "SCAN") -> Execution:
    return start(vendor, [[NewJob("a.job", job_id=job)] for job in jobs]).execution


def written(
    redis: Redis, job: str, status: str, node: str = "", *, landed: bool = False, message: str = "", later: int = 0
) -> None:
    """The record of a job in progress, heard of now or (if it is to run later) in so many seconds."""
    task = Task.objects.filter(job_id=job).first()
    now = job_records().memory().now
    known = Acknowledged(0, status, now) if landed else None
    at = now + later * 1_000_000
    lease = now if node == "live" else 0
    record = JobRecord(job, 0, status, 1, at, node, task.pk if task else 1, known, True, message, lease)
    redis.hset("cache:execution:refresh:jobs", job, record.text)


def statuses(execution: Execution) -> tuple[str, dict[str, str]]:
    execution.refresh_from_db()
    return execution.status, dict(execution.tasks.values_list("job_id", "status"))


def failed(execution: Execution, *jobs: str) -> None:
    for task in execution.tasks.filter(job_id__in=jobs):
        report([Report(task.pk, "Error", task.status_revision)])
