"""The events of Celery that end a job without its code: its message was revoked, has expired, names an unknown
task or cannot be used (validation.py), or its run took longer than its hard limit.

Each end is written here, in the worker's main process, because the job's code never learns of it. If the
database is away, then it is logged. A job without a run is sent again later; a run whose process was killed is
released.
"""

import logging
from collections.abc import Mapping
from typing import Any

from billiard.exceptions import TimeLimitExceeded, WorkerLostError
from celery import signals
from celery.worker import state
from celery.worker.request import Request
from django.db import DatabaseError, connection

from harbor_refresh.executions.errors import DatabaseAway
from harbor_refresh.executions.status import Status
from harbor_refresh.executions.text import is_text, made_storable, said_by, shown
from harbor_refresh.tasks.jobs.messages import header as message_header
from harbor_refresh.tasks.jobs.nodes import this_node
from harbor_refresh.tasks.jobs.outcomes import MAX_MESSAGE, Outcome, Run, take
from harbor_refresh.tasks.jobs.sender import has_expired
from harbor_refresh.tasks.models.job import Job, State

log = logging.getLogger("harbor_refresh")

MAX_JOB = 64


class TrackedRequest(Request):
    """The request of a job, which the main process of a worker keeps while another process runs it."""

    def on_timeout(self, soft: bool, timeout: float) -> Any:
        """Write a hard limit before Celery acknowledges the message. If this process dies in between, the run is
        released."""
        if not soft and not state.should_terminate:
            header, why = self.request_dict.get(message_header.NAME), said_by(TimeLimitExceeded(timeout))
            end(self.id, header, Status.ERROR, why, state=State.RUNNING)
        return super().on_timeout(soft, timeout)

    def on_failure(self, exc_info: Any, *args: Any, **options: Any) -> Any:
        """Have the runs of a process that died released at once."""
        if isinstance(getattr(exc_info, "exception", None), WorkerLostError):
            this_node.wake()
        return super().on_failure(exc_info, *args, **options)


def on_revoked(request: Any, terminated: bool, expired: bool, **_: Any) -> None:
    header = request.get(message_header.NAME)
    if terminated:
        end(request.id, header, Status.STOPPED, "it was revoked while it ran", state=State.RUNNING)
    elif not expired:
        end(request.id, header, Status.STOPPED, "it was revoked")
    else:
        state.revoked.discard(request.id)  # it may run again, by a message that does not expire
        end(request.id, header, Status.STOPPED, "it expired before it began", if_expired=True)


def on_unknown(message: Any, name: str, id: str, **_: Any) -> None:
    why = f"the worker that got it knows no task {name!r}"
    end(id, message.headers.get(message_header.NAME), Status.ERROR, why)


def log_dropped(fields: Mapping[str, Any], why: str) -> None:
    why = made_storable(" ".join(why[:MAX_MESSAGE].split()))
    if message_header.NAME in fields:
        log.error("Dropped the message of job %s: %s", shown(fields.get("id")), why)
    else:
        log.error("Dropped a message for the task %s: %s", shown(fields.get("task")), why)


def on_unusable(fields: Mapping[str, Any], why: str) -> None:
    log_dropped(fields, why)
    end(fields.get("id"), fields.get(message_header.NAME), Status.ERROR, why)


def end(
    job: Any, header: Any, status: Status, why: str, *, state: State = State.SENT, if_expired: bool = False
) -> None:
    """End the job of a dropped message, if no run has begun: sent -> ended; or the run of a message, whose process
    is killed: running -> ended. A message that names no job ends none. `if_expired`: and if the job has expired by
    its row, because one that was resumed does not expire. Log that the database is away, or refuses, and do not
    raise: no message may end a worker."""
    found = message_header.read(header)
    if found is None or not is_text(job, MAX_JOB, at_least=1):
        return
    task_id, number = found
    its = Run(task_id, job, number) if state == State.SENT else Run(task_id, job, number + 1, node=this_node.id)
    why = made_storable(why)[:MAX_MESSAGE]
    try:
        if if_expired:
            row = Job.objects.only("options").filter(pk=task_id).first()
            if row is None or not has_expired(row.options):
                return
        take([Outcome(its, status, why, state=state)])
    except (DatabaseAway, DatabaseError) as exc:
        log.warning("Could not write of task %d that %s: %s", task_id, why, exc)
    finally:
        connection.close()  # the main process keeps none


def connect() -> None:
    signals.task_revoked.connect(on_revoked, dispatch_uid="tasks.jobs.celery_events.revoked")
    signals.task_unknown.connect(on_unknown, dispatch_uid="tasks.jobs.celery_events.unknown")
