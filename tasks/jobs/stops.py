"""Stops of jobs. The end of a task ends its job (sql/end_with_their_tasks.sql): a job that waits begins no more,
and the process of one that runs finds so within a second (writer.py), and `should_stop` says it."""

from collections.abc import Sequence

from django.db import transaction

from harbor_refresh.executions.lifecycle import links
from harbor_refresh.executions.lifecycle.stops import Stopped, stop, stop_many, stop_task
from harbor_refresh.tasks.models.job import Job, State
from harbor_refresh.tasks.without_redis.agenda import at_once


@at_once
def stop_jobs(execution_id: int) -> int:
    """Stop the jobs of the execution and of its descendants. Returns how many run, and are to stop.

    The execution has ended when this returns, and no report of a job opens it. Its status follows from its tasks:
    Error if one had failed before, else Stopped. An execution that had ended keeps its status.
    """
    with transaction.atomic():
        family = links.family([execution_id])
        running = Job.objects.filter(task__execution_id__in=family, state=State.RUNNING).count()
        stop(execution_id)
    return running


@at_once
def stop_jobs_of(execution_ids: Sequence[int]) -> Stopped:
    """Stop the jobs of all these executions, as `stop_jobs` does, in one transaction. Unknown ids are left out."""
    return stop_many(execution_ids)


@at_once
def stop_job_of(task_id: int) -> bool:
    """Stop one task and its job, or the child that it stands for; also the jobs that follow it in a chain. False
    if it has ended already."""
    if child := links.child_of_task(task_id):
        return bool(stop_jobs_of([child]).executions)
    return stop_task(task_id)
