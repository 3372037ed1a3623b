"""Eager mode: a job runs in the process that starts it, as `Task.apply` of Celery runs a plain task.

It differs from `apply` in one thing: another try is put on the agenda, as a message would be put on a queue, and
begins at once, whatever its countdown.
"""

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from celery import current_app
from celery.app.trace import build_tracer
from django.db.models.functions import Now

from harbor_refresh.tasks.jobs.messages import header as message_header
from harbor_refresh.tasks.models.job import Job, State
from harbor_refresh.tasks.without_redis import agenda

#: The executions that this process has started: it runs the jobs of no other.
executions: set[int] = set()


@dataclass(frozen=True)
class Sent:
    """A job that is noted as sent, with what its message needs. `args` and `kwargs` are the beginnings of its
    arguments, for people who look at messages."""

    task_id: int
    job: str
    number: int
    name: str
    queue: str
    options: Mapping[str, Any]
    retries: int
    args: str
    kwargs: str


def put_next() -> None:
    """Have the jobs run whose turn has come, in this order, whatever their time: no other process runs them."""
    ready = Job.objects.filter(task__execution_id__in=executions, state=State.WAITING, waits_for=0)
    jobs = list(ready.select_related("task").order_by("pk"))
    Job.objects.filter(pk__in=[one.pk for one in jobs]).update(state=State.SENT, sent_at=Now(), not_before=None)
    for one in jobs:
        agenda.add_run(partial(_run, one))


def _run(job: Job) -> None:
    task = current_app.tasks[job.name]
    headers = message_header.of(job.pk, job.run)
    request = {
        "id": job.task.job_id,
        "root_id": job.task.job_id,
        "task": job.name,
        "retries": job.retries,
        "is_eager": True,
        "hostname": socket.gethostname(),
        "ignore_result": task.ignore_result,
        "delivery_info": {"is_eager": True},
        "headers": headers,
        **headers,
    }
    trace = build_tracer(job.name, task, eager=True, propagate=False, app=current_app)
    trace(job.task.job_id, [], {}, request)
