"""What is dropped: a message that was revoked, has expired, that no task is known for or that Celery could not use
(received.py), and a run that took longer than its hard limit. None of them gets to the code of a job, so each is
told to Redis here, in the worker's main process.
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from celery import signals

from executions.errors import QueueUnavailable
from executions.status import Status
from executions.text import made_storable, shown, storable
from tasks.jobs import header
from tasks.jobs.lifecycle.ends import end_running, end_waiting, send_again
from tasks.jobs.records.record import MAX_MESSAGE
from tasks.queue.node import host_of, this_node

log = logging.getLogger("harbor_refresh")


def on_revoked(request: Any, terminated: bool, expired: bool, **_: Any) -> None:
    if terminated:
        end_run(request.id, "it was revoked while it ran", Status.STOPPED)
    else:
        why = "it expired before it began" if expired else "it was revoked"
        end_message(request.id, request.get(header.NAME), Status.STOPPED, why)


def on_unknown(message: Any, name: str, id: str, **_: Any) -> None:
    why = f"the worker that got it knows no task {name!r}"
    end_message(id, message.headers.get(header.NAME), Status.ERROR, why)


def on_unusable(fields: Mapping[str, Any], why: str) -> None:
    job = shown(fields.get("id"))
    log.error("Dropped the message of job %s: %s", job, why)
    end_message(fields.get("id"), fields.get(header.NAME), Status.ERROR, why)


def end_message(job: Any, told: Any, status: Status, why: str) -> None:
    """A message that names no job, or no task, ends none."""
    task = header.task_of(told)
    if task and storable(job):
        why = made_storable(why)[:MAX_MESSAGE]
        with _without_redis_told(job, why):
            end_waiting(job, *task, status, why)


def end_run(job: str, why: str, status: Status = Status.ERROR) -> None:
    with _without_redis_told(job, why):
        end_running(job, host_of(this_node.name), status, why)


def on_hard_limit(fields: Mapping[str, Any], why: str) -> None:
    """It ends the run; or, if none had begun, it takes a message away that was to come again."""
    job, told = fields["id"], fields.get(header.NAME)
    with _without_redis_told(job, why):
        is_ended = end_running(job, host_of(this_node.name), Status.ERROR, why)
        if not is_ended and (task := header.task_of(told)):
            send_again(job, *task)


@contextmanager
def _without_redis_told(job: str, why: str) -> Iterator[None]:
    try:
        yield
    except QueueUnavailable as exc:
        log.warning("Could not record of job %s that %s: %s", job, why, exc)


def connect() -> None:
    signals.task_revoked.connect(on_revoked, dispatch_uid="tasks.jobs.runtime.dropped.revoked")
    signals.task_unknown.connect(on_unknown, dispatch_uid="tasks.jobs.runtime.dropped.unknown")
