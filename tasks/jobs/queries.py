"""What is asked of jobs: how many are where, what a job does now, and why it does not run. Nothing is changed."""

from collections import Counter
from datetime import datetime
from math import ceil
from typing import Any

from django.db.models import Sum
from django.db.models.functions import Now

from harbor_refresh.executions.database import absence_translated
from harbor_refresh.tasks.jobs import limits
from harbor_refresh.tasks.jobs.running.handle import JobCheckIn
from harbor_refresh.tasks.models import Pause
from harbor_refresh.tasks.models.job import Job, JobState, Node


def overview() -> tuple[dict[str, int], list[dict[str, Any]]]:
    """Count the jobs that have not ended, by where they are, and read the workers. Of those that wait, `in_chains`
    wait for jobs that they need, `later` for their time, and `limited` for their limit; the report target has
    not taken the report of `unreported` ones. Each count reads an index that has no other jobs."""
    waiting = Job.objects.filter(state=JobState.WAITING)
    with absence_translated():
        running = Counter(Job.objects.filter(state=JobState.RUNNING).values_list("node", flat=True))
        counts = {
            "waiting": Job.in_line(admitted=True).count(),
            "in_chains": waiting.filter(waits_for__gt=0).count(),
            "later": waiting.filter(waits_for=0, not_before__isnull=False).count(),
            "limited": Job.in_line(admitted=False).count(),
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
        return _why(Job.objects.select_related("task").annotate(now=Now()).get(pk=job.pk))


def _why(job: Any) -> str:
    if job.state == JobState.ENDED:
        if job.report is not None:
            return "it has ended, and the target of the hook has not taken its report"
        message = (job.task.status_message or "")[:1000]
        return f"it has ended as {job.task.status}" + (f": {message}" if message else "")
    if job.state == JobState.RUNNING:
        worker = Node.objects.filter(pk=job.node).first() or "a dead worker; it is released in a few seconds"
        return f"it runs on {worker}, process {job.process}, since {_seconds(job.begun_at, job.now)} s"
    if job.waits_for:
        first = job.needs.filter(is_met=False).order_by("needed").values_list("needed", flat=True).first()
        count = job.needs.count()
        several = f"and for {job.waits_for} of the {count} jobs that it needs in all"
        return f"it waits for task {first}, {several if count > 1 else 'which it needs'}"
    if job.not_before and job.not_before > job.now:
        return f"its time is in {ceil((job.not_before - job.now).total_seconds())} s"
    return _why_in_its_queue(job)


def _why_in_its_queue(job: Any) -> str:
    if pause := Pause.objects.filter(pk=job.queue).first():
        return f"the queue {job.queue} is paused by {pause.by}"
    workers = Node.objects.filter(queues__contains=[job.queue])
    slots, busy = workers.aggregate(Sum("slots", default=0), Sum("busy", default=0)).values()
    if not slots:
        return f"no live worker takes the queue {job.queue}"
    if not job.admitted:
        line = Job.in_line(name=job.name, limit_key=job.limit_key, admitted=False)
        next_one = line.order_by("priority", "turn", "pk").values("queue")[:1]
        if pause := Pause.objects.filter(pk__in=next_one).first():
            return f"the next job of its limit is in the queue {pause.pk}, which is paused by {pause.by}"
        return limits.why_full(job) or "it is admitted in a moment"
    if job.state == JobState.SENT:
        return f"sent {_seconds(job.sent_at, job.now)} s ago, {busy} of {slots} slots of its workers are busy"
    line = Job.in_line(queue=job.queue, admitted=True)
    same = line.filter(priority=job.priority, turn__lte=job.turn).exclude(turn=job.turn, pk__gte=job.pk)
    more_urgent = line.filter(priority__lt=job.priority)
    count = sum(rows[: limits.MOST_COUNTED].count() for rows in (more_urgent, same))
    return f"{min(count, limits.MOST_COUNTED)} jobs of the queue {job.queue} come before it"


def _seconds(since: datetime, now: datetime) -> int:
    return round((now - since).total_seconds())
