"""The events of Celery that end a job without its code: its message was revoked, has expired, names an unknown
task or cannot be used (message_check.py), or its run took longer than its hard limit.

Each end is recorded in Redis here, in the worker's main process, because the job's code never learns of it. The
message of another database ends nothing. For that the process reads the name of its database, usually once.
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from celery import signals
from django.db import DatabaseError, connection

from harbor_refresh.executions.errors import DatabaseAway, QueueUnavailable
from harbor_refresh.executions.status import Status
from harbor_refresh.executions.text import made_storable, shown, storable
from harbor_refresh.tasks import signals as signals_of_tasks
from harbor_refresh.tasks.jobs import message_header
from harbor_refresh.tasks.jobs.delivery import reporter
from harbor_refresh.tasks.jobs.lifecycle.ends import end_running, end_waiting, send_again
from harbor_refresh.tasks.jobs.lifecycle.job_report import JobReport
from harbor_refresh.tasks.jobs.records import own_database
from harbor_refresh.tasks.jobs.records.record import MAX_MESSAGE
from harbor_refresh.tasks.queue.node import host_of, this_node
from harbor_refresh.tasks.without_redis import mode

log = logging.getLogger("harbor_refresh")


def on_revoked(request: Any, terminated: bool, expired: bool, **_: Any) -> None:
    if terminated:
        end_run(request.id, request.get(message_header.NAME), "it was revoked while it ran", Status.STOPPED)
    else:
        why = "it expired before it began" if expired else "it was revoked"
        end_message(request.id, request.get(message_header.NAME), Status.STOPPED, why)


def on_unknown(message: Any, name: str, id: str, **_: Any) -> None:
    why = f"the worker that got it knows no task {name!r}"
    end_message(id, message.headers.get(message_header.NAME), Status.ERROR, why)


def log_dropped(fields: Mapping[str, Any], why: str) -> None:
    why = made_storable(" ".join(why[:MAX_MESSAGE].split()))
    if message_header.NAME in fields:
        log.error("Dropped the message of job %s: %s", shown(fields.get("id")), why)
    else:
        log.error("Dropped a message for the task %s: %s", shown(fields.get("task")), why)


def on_unusable(fields: Mapping[str, Any], why: str) -> None:
    log_dropped(fields, why)
    end_message(fields.get("id"), fields.get(message_header.NAME), Status.ERROR, why)


def end_message(job: Any, header: Any, status: Status, why: str) -> None:
    """End the job of a dropped message. A message that names no job, or no task, ends none."""
    task = message_header.task_of(header)
    if task and storable(job):
        why = made_storable(why)[:MAX_MESSAGE]
        if mode.is_on():
            reporter.put(JobReport(job, *task, status, why))
            connection.close()  # as below: no task ends here after which it would be closed
            return
        with _absence_logged(job, why):
            if _is_ours(job, header):
                end_waiting(job, *task, status, why)


def end_run(job: str, header: Any, why: str, status: Status) -> None:
    with _absence_logged(job, why):
        if _is_ours(job, header):
            end_running(job, host_of(this_node.name), status, why)


def on_hard_limit(fields: Mapping[str, Any], why: str) -> None:
    """End the run. If none had begun, request another message, because Celery acknowledges this one."""
    job, header = fields["id"], fields.get(message_header.NAME)
    with _absence_logged(job, why):
        if not _is_ours(job, header):
            return
        is_ended = end_running(job, host_of(this_node.name), Status.ERROR, why)
        if not is_ended and (task := message_header.task_of(header)):
            send_again(job, *task)


def _is_ours(job: str, header: Any) -> bool:
    """Whether the message is for our database. If it is not, tell so."""
    if is_ours := own_database.is_known(database := message_header.database_of(header)):
        return is_ours
    try:
        is_ours = own_database.is_ours(database)
    finally:
        connection.close()  # the main process keeps none
    if not is_ours:
        signals_of_tasks.message_refused.send(sender=end_message, job=job)
    return is_ours


@contextmanager
def _absence_logged(job: str, why: str) -> Iterator[None]:
    """Log that Redis or the database is away, or refuses, and do not raise: no message may end a worker."""
    try:
        yield
    except (QueueUnavailable, DatabaseAway, DatabaseError) as exc:
        log.warning("Could not record of job %s that %s: %s", job, why, exc)


def connect() -> None:
    signals.task_revoked.connect(on_revoked, dispatch_uid="tasks.jobs.runtime.celery_events.revoked")
    signals.task_unknown.connect(on_unknown, dispatch_uid="tasks.jobs.runtime.celery_events.unknown")
