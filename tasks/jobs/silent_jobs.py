"""Silent jobs: end them, and do what Harbor's job service does beside that for reports that got lost.

| its job                                            | then                                   |
| -------------------------------------------------- | -------------------------------------- |
| has a report that its target has not taken         | it is fired again (report_target.py)   |
| has a report, and its task has that or a later one | the report is forgotten                |
| runs, and was not heard of for REFRESH_JOB_HOURS   | it fails, with that reason             |
| had a rate, whose pace is of the past              | the pace is forgotten (limits.py)      |

Jobs of dead nodes are released by nodes.py: that is the counterpart of `requeue` of the job service's dead pool.
"""

from dataclasses import dataclass
from datetime import timedelta

from django.db.models.functions import Now

from harbor_refresh.executions.database import absence_translated
from harbor_refresh.executions.status import Status
from harbor_refresh.tasks.conf import refresh_settings
from harbor_refresh.tasks.jobs import limits, report_target
from harbor_refresh.tasks.jobs.outcomes import Outcome, Run, take_apart
from harbor_refresh.tasks.models.job import Job, State
from harbor_refresh.tasks.news import signals

PAGE = 500


@dataclass
class Reaped:
    """What a pass did."""

    reported: int = 0
    failed: int = 0


def reap() -> Reaped:
    """Do one pass. If the process dies on any line, then the next pass does the rest. A job whose task is locked,
    or that the database refuses, holds up no other."""
    hours = refresh_settings().job_hours
    done = Reaped(reported=report_target.fire_again())
    limits.forget_paces()
    why = f"nothing was heard of it for {hours:g} hours"
    silent = Job.objects.filter(state=State.RUNNING, heard_at__lt=Now() - timedelta(hours=hours)).order_by("pk")
    after = 0
    while True:
        with absence_translated():
            page = list(silent.filter(pk__gt=after).values_list("pk", "run")[:PAGE])
        outcomes = [Outcome(Run(task_id, "", number), Status.ERROR, why) for task_id, number in page]
        done.failed += len(take_apart(outcomes, waits=False)[0])
        if len(page) < PAGE:
            break
        after = page[-1][0]
    signals.reaped.send(sender=reap, outcome=done)
    return done
