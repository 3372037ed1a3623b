"""Eager mode: a job runs in the process that starts it, as `Task.apply` of Celery runs a plain task.

It differs from `apply` in one thing: another try is put on the agenda, as a message would be put on a queue, and
begins at once, whatever its countdown.
"""

import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from celery import current_app
from celery.app.trace import build_tracer
from django.db import connection, transaction

from tasks.jobs import message_header
from tasks.jobs.lifecycle.message import Message
from tasks.without_redis import agenda

#: Of a connection whose transaction PostgreSQL has given up, by libpq's number.
IN_ERROR = 3


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


@contextmanager
def with_savepoint() -> Iterator[None]:
    """In the transaction of a caller, keep what the code writes, as a worker would, until PostgreSQL refuses a
    statement: then take it all back, because the transaction could do nothing more."""
    if not connection.in_atomic_block:
        yield
        return
    savepoint = transaction.savepoint()
    try:
        yield
    except BaseException:
        _end(savepoint)
        raise
    _end(savepoint)


def _end(savepoint: str) -> None:
    # atomic() leaves a mark if it could not roll back to a savepoint of its own
    if connection.needs_rollback or connection.connection.info.transaction_status == IN_ERROR:
        connection.needs_rollback = False
        transaction.savepoint_rollback(savepoint)
    else:
        transaction.savepoint_commit(savepoint)
