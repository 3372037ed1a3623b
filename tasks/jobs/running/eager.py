"""Eager mode: a job runs in the process that starts it, as `Task.apply` of Celery runs a plain task.

It differs from `apply` in one thing: another try is put on the agenda, as a message would be put on a queue, and
begins at once, whatever its countdown.
"""

import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from celery import current_app
from celery.app.trace import build_tracer

from harbor_refresh.tasks.jobs.messages import header as message_header
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


def put(jobs: Sequence[Sent]) -> None:
    """Have these jobs run, in this order."""
    for one in jobs:
        agenda.add_run(partial(_run, one))


def _run(sent: Sent) -> None:
    task = current_app.tasks[sent.name]
    headers = message_header.of(sent.task_id, sent.number)
    request = {
        "id": sent.job,
        "root_id": sent.job,
        "task": sent.name,
        "retries": sent.retries,
        "is_eager": True,
        "hostname": socket.gethostname(),
        "ignore_result": task.ignore_result,
        "delivery_info": {"is_eager": True},
        "headers": headers,
        **headers,
    }
    build_tracer(sent.name, task, eager=True, propagate=False, app=current_app)(sent.job, [], {}, request)
