"""Eager mode: a job runs in the process that starts it, as `Task.apply` of Celery runs a plain task.

It differs from `apply` in one thing: another try is put on the agenda, as a message would be put on a queue, and
begins at once, whatever its countdown.
"""

from functools import partial

from celery import current_app
from celery.app.trace import build_tracer
from celery.utils.nodenames import gethostname
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
    task = current_app.tasks[job.name]
    headers = header_of(job.pk, job.run)
    request = {
        "id": job.task.job_id,
        "root_id": job.task.job_id,
        "task": job.name,
        "hostname": gethostname(),
        "retries": job.retries,
        "is_eager": True,
        "ignore_result": task.ignore_result,
        "delivery_info": {"is_eager": True},
        "headers": headers,
        **headers,
    }
    trace = build_tracer(job.name, task, eager=True, propagate=False, app=current_app)
    trace(job.task.job_id, [], {}, request)
