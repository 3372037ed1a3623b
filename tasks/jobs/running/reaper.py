"""The reaper: every way in which a run is ended or released that does not end by itself. The first is called by
workers, within seconds (jobs/live_workers.py); the others are an hourly pass (`reap`).

| its job                                            | then                                                  |
| -------------------------------------------------- | ----------------------------------------------------- |
| ran on a dead worker, or in a dead process         | it waits for another run, or fails, see max_attempts  |
| runs, and was not heard of for REFRESH_JOB_HOURS   | it fails, with that reason                            |
| has a report that its target has not taken         | it is fired again (report_target.py)                  |
| has a report, and its task has that or a later one | the report is forgotten                               |
| had a rate, whose pace is of the past              | the pace is forgotten                                 |

Any number of processes may do so at once. A run whose task is locked, or that the database refuses, holds up no
other: the next pass tries it again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Now

from harbor_refresh.executions.database import absence_translated
from harbor_refresh.executions.status import Status
from harbor_refresh.tasks.conf import refresh_settings
from harbor_refresh.tasks.jobs import report_target, sender
from harbor_refresh.tasks.jobs.outcomes import Outcome, Run, exhausted, take_apart
from harbor_refresh.tasks.models.job import Job, JobState, Node
from harbor_refresh.tasks.models.terms import LimitPace
from harbor_refresh.tasks.news import signals

#: The worker of runs in eager mode, which no other process watches.
EAGER = 0


@dataclass(frozen=True)
class Reaped:
    """What a pass did."""

    reported: int = 0
    failed: int = 0


def reap() -> Reaped:
    """Do one pass. If the process dies on any line, then the next pass does the rest."""
    hours = refresh_settings().job_hours
    reported = report_target.fire_again()
    with absence_translated():
        LimitPace.objects.filter(next_at__lt=Now() - timedelta(hours=1)).delete()
    why = f"nothing was heard of it for {hours:g} hours"
    silent = running(Q(heard_at__lt=Now() - timedelta(hours=hours)))
    failed = take_apart([_outcome(job, Status.ERROR, why) for job in silent]).stood
    done = Reaped(reported, len(failed))
    signals.reaped.send(sender=reap, outcome=done)
    return done


def running(which: Any) -> list[Job]:
    """Return the jobs that run and to which this applies."""
    fields = ("run", "node", "process", "queue", "runs_before", "max_attempts")
    with absence_translated():
        return list(Job.objects.filter(which, state=JobState.RUNNING).only(*fields).order_by("pk"))


def release_runs_without_worker() -> int:
    """Release what dead workers ran, or workers that have left."""
    return release(running(~Q(node=EAGER) & ~Exists(Node.objects.filter(pk=OuterRef("node")))))


def release(lost: Sequence[Job]) -> int:
    """Release these runs, whose processes are dead: each job waits for another run, or has failed if it has begun
    as often as it may. Returns how many."""
    taken = take_apart(
        [
            _outcome(job, Status.PENDING, "its process died")
            if job.run < job.may_begin
            else _outcome(job, Status.ERROR, exhausted(job.may_begin))
            for job in lost
        ]
    ).stood
    if taken:
        signals.runs_released.send(sender=release, count=len(taken))
        sender.send_behind({one.queue for one in taken if one.waits}, taken)
    return len(taken)


def _outcome(job: Job, status: Status, why: str) -> Outcome:
    its = Run(job.pk, "", job.run, 0, job.node, job.process)
    return Outcome(its, status, why, is_needed=True, queue=job.queue)  # perhaps it is
