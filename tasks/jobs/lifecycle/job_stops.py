"""Stops of jobs: waiting jobs do not begin any more, running jobs are asked to stop."""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

from django.db import transaction

from harbor_refresh.executions.errors import QueueUnavailable
from harbor_refresh.executions.lifecycle import links
from harbor_refresh.executions.lifecycle.stops import Stopped, stop, stop_many, stop_task
from harbor_refresh.executions.models import Task
from harbor_refresh.executions.status import FINAL_CODE, Status
from harbor_refresh.tasks import signals
from harbor_refresh.tasks.jobs.records.records import job_records
from harbor_refresh.tasks.without_redis import mode
from harbor_refresh.tasks.without_redis.agenda import at_once


@at_once
def stop_jobs(execution_id: int, also: Callable[[], object] = lambda: None) -> int:
    """Stop the jobs of the execution and of its descendants. Returns how many run and were asked to stop; inside a
    transaction, which asks them after its commit, how many run as far as the database knows. `also` is called in
    the same transaction.

    The execution has ended when this returns, and no report of a job opens it. Its status follows from its tasks:
    Error if one had failed before, else Stopped. An execution that had ended keeps its status.

    The database is first: it is asked before each job begins, so none begins after the commit. Only after the
    commit are running jobs asked to stop. What if the process dies in between, or Redis is away: recovery finds
    jobs that run although they have ended, and asks them.
    """
    asked: list[int] = []
    with transaction.atomic():
        jobs = _unfinished_jobs(links.family([execution_id]))
        stop(execution_id)
        also()
        transaction.on_commit(lambda: asked.append(ask_to_stop(list(jobs))))
    return asked[0] if asked and not mode.is_on() else sum(status == Status.RUNNING for status in jobs.values())


@at_once
def stop_jobs_of(execution_ids: Sequence[int]) -> Stopped:
    """Stop the jobs of all these executions, as `stop_jobs` does, in one transaction. Unknown ids are left out."""
    with transaction.atomic():
        jobs = list(_unfinished_jobs(links.family(execution_ids)))
        stopped = stop_many(execution_ids)
        transaction.on_commit(lambda: ask_to_stop(jobs))
    return stopped


@at_once
def stop_job_of(task_id: int) -> bool:
    """Stop one task and its job, or the child that it stands for. False if it has ended already. What if the
    process dies after the commit: as in `stop_jobs`. Jobs that follow it in a chain are stopped by recovery.
    """
    if child := links.child_of_task(task_id):
        return bool(stop_jobs_of([child]).executions)
    with transaction.atomic():
        job_ids = Task.objects.filter(pk=task_id).exclude(job_id="").values_list("job_id", flat=True)
        jobs = list(job_ids)
        if stopped := stop_task(task_id):
            transaction.on_commit(partial(ask_to_stop, jobs))
    return stopped


def _unfinished_jobs(execution_ids: Collection[int]) -> dict[str, str]:
    """Return the jobs that have not ended, with the statuses of their tasks."""
    tasks = Task.objects.filter(execution_id__in=execution_ids, status_code__lt=FINAL_CODE).exclude(job_id="")
    return dict(tasks.values_list("job_id", "status"))


def on_executions_deleted(job_ids: Sequence[str], **_: Any) -> None:
    """Receive the news that harbor_refresh.executions.news.after_commit.tell_deleted_after_commit sends."""
    ask_to_stop(job_ids)


def ask_to_stop(jobs: Sequence[str]) -> int:
    """Ask these jobs to stop: their tasks are stopped or gone, and that is committed. Returns how many run."""
    try:
        return job_records().stop(jobs)
    except QueueUnavailable as exc:
        signals.stops_lost.send(sender=ask_to_stop, count=len(jobs), error=str(exc))
        return 0
