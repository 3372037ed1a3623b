"""What is asked of jobs: how many are where, what a job does now, and why it does not run. Nothing is changed."""

from collections import Counter
from typing import Any

from harbor_refresh.executions.database import absence_translated
from harbor_refresh.tasks.jobs.running.handle import JobCheckIn
from harbor_refresh.tasks.jobs.sql import run
from harbor_refresh.tasks.models.job import Job, JobState, Node


def overview() -> tuple[dict[str, int], list[dict[str, Any]]]:
    """Count the jobs that have not ended, by where they are, and read the workers. Of those that wait, `in_chains`
    wait for jobs that they need, `later` for their time, and `limited` for their limit; the report target has
    not taken the report of `unreported` ones. Each count reads an index that has no other jobs."""
    waiting = Job.objects.filter(state=JobState.WAITING)
    with_a_turn = waiting.filter(waits_for=0)
    with absence_translated():
        running = Counter(Job.objects.filter(state=JobState.RUNNING).values_list("node", flat=True))
        counts = {
            "waiting": with_a_turn.filter(not_before=None, admitted=True).count(),
            "in_chains": waiting.filter(waits_for__gt=0).count(),
            "later": with_a_turn.filter(not_before__isnull=False).count(),
            "limited": with_a_turn.filter(not_before=None, admitted=False).count(),
            "sent": Job.objects.filter(state=JobState.SENT).count(),
            "running": running.total(),
            "unreported": Job.objects.filter(report__isnull=False).count(),
        }
        counts["waiting"] += counts["in_chains"] + counts["later"] + counts["limited"]
        return counts, [
            {
                "name": one.name,
                "running": running[one.pk],
                "slots": one.slots,
                "queues": one.queues,
                "heard_at": one.heard_at.isoformat(),
                "is_suspected": one.suspected_at is not None,
            }
            for one in Node.objects.order_by("name")
        ]


def running_jobs(execution_id: int, most: int) -> list[Job]:
    """Return its jobs that run, the oldest first."""
    rows = Job.objects.select_related("task").filter(task__execution_id=execution_id, state=JobState.RUNNING)
    return list(rows.order_by("pk")[:most])


def check_in_of(job: Job) -> JobCheckIn | None:
    """Return what the run said last; None if the job does not run, or has said nothing."""
    return JobCheckIn(**job.check_in) if job.state == JobState.RUNNING and job.check_in else None


def why(job: Job) -> str:
    """Say why this job does not run, or that it does."""
    with absence_translated():
        [(reason,)] = run("why", task_id=job.pk)
    return str(reason)
