"""Stops of jobs. The end of a task ends its job (sql/schema/end_with_their_tasks.sql): a job that waits begins no
more, and the process of one that runs finds so within a second (writer.py), and `should_stop` says it."""

from datetime import timedelta

from django.db import transaction
from django.db.models.functions import Now

from harbor_refresh.executions.lifecycle import links
from harbor_refresh.executions.lifecycle.stops import stop, stop_many, stop_task
from harbor_refresh.executions.status import Status
from harbor_refresh.executions.text import is_number
from harbor_refresh.tasks.jobs.starting.options import MAX_SECONDS, Takes, refuse
from harbor_refresh.tasks.models.job import Job, JobState
from harbor_refresh.tasks.without_redis.agenda import at_once

#: A run hears of its stop within a second.
KILL_AFTER = Takes(
    f"a number of seconds from 1 to {MAX_SECONDS:,} (a year)", lambda value: is_number(value, 1, MAX_SECONDS)
)


@at_once
def stop_jobs(execution_id: int, *, kill_after: float | None = None) -> int:
    """Stop the jobs of the execution and of its descendants, as `TrackedExecution.stop` says. Returns how many
    run, and are to stop. Those that were stopped before are killed after `kill_after` seconds, too."""
    refuse("stop", "kill_after", kill_after, KILL_AFTER)
    with transaction.atomic():
        family = links.family([execution_id])
        running = Job.objects.filter(task__execution_id__in=family, state=JobState.RUNNING).count()
        stop(execution_id)
        if kill_after is not None:
            # the family is locked, so none of these jobs begins again; live_workers.py kills
            begun = Job.objects.filter(task__execution_id__in=links.family([execution_id]), run__gte=1)
            begun.filter(task__status=Status.STOPPED).update(kill_at=Now() + timedelta(seconds=kill_after))
    return running


stop_jobs_of = at_once(stop_many)
stop_job_of = at_once(stop_task)
