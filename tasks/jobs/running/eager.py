"""Eager mode: a job runs in the process that starts it, by `Task.apply` of Celery, as a plain task does.

Another try is put on the agenda, as a message would be put on a queue, and begins at once, whatever its countdown.
"""

from functools import partial
from typing import Any

from celery import current_app
from django.db.models.functions import Now

from harbor_refresh.tasks.jobs.outcomes import header_of
from harbor_refresh.tasks.models.job import Job, JobState
from harbor_refresh.tasks.without_redis import agenda

#: The executions that this process has started: it runs the jobs of no other.
executions: set[int] = set()


def put_next() -> None:
    """Have the jobs run whose turn has come, in this order, whatever their time: no other process runs them."""
    ready = Job.objects.filter(task__execution_id__in=executions, state=JobState.WAITING, waits_for=0)
    jobs = list(ready.select_related("task").order_by("pk"))
    Job.objects.filter(pk__in=[one.pk for one in jobs]).update(state=JobState.SENT, sent_at=Now(), not_before=None)
    for one in jobs:
        agenda.add_run(partial(_run, one))


def _run(job: Job) -> None:
    task: Any = current_app.tasks[job.name]
    its = {"task_id": job.task.job_id, "retries": job.retries, "headers": header_of(job.pk, job.run)}
    task.apply([None], throw=False, ignore_result=True, **its)  # the run replaces it; of [] Celery makes a tuple
