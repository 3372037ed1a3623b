"""Eager mode: a job runs in the process that starts it, as `Task.apply` of Celery runs a plain task.

It differs from `apply` in one thing: another try is put on the agenda, as a message would be put on a queue, and
begins at once, whatever its countdown.
"""

import socket
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from celery import current_app
from celery.app.trace import build_tracer

from harbor_refresh.tasks.jobs import message_header
from harbor_refresh.tasks.jobs.lifecycle.message import Message
from harbor_refresh.tasks.without_redis import agenda


def publish(messages: Sequence[Message]) -> None:
    """Have these jobs run, in this order."""
    for one in messages:
        put(one.name, one.args, one.kwargs, {"task_id": one.job, "headers": message_header.of(one)})


def put(name: str, args: Any, kwargs: Any, options: Mapping[str, Any]) -> None:
    """Have one message run, such as another try of a job. `options` are those of `apply_async`."""
    agenda.add_run(partial(_run, name, list(args or ()), dict(kwargs or {}), options))


def _run(name: str, args: list[Any], kwargs: dict[str, Any], options: Mapping[str, Any]) -> None:
    task, job, headers = current_app.tasks[name], options["task_id"], options["headers"]
    request = {
        "id": job,
        "root_id": job,
        "task": name,
        "retries": options.get("retries", 0),
        "is_eager": True,
        "hostname": socket.gethostname(),
        "ignore_result": task.ignore_result,
        "delivery_info": {"is_eager": True},
        "headers": headers,
        **headers,
    }
    build_tracer(name, task, eager=True, propagate=False, app=current_app)(job, args, kwargs, request)
