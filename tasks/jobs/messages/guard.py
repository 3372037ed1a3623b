"""Refuse each message that a worker cannot use, and end the jobs that Celery ends without their code.

Celery's main process reads a message in several places, and an error in most of them ends the worker. The broker
then gives the message to the next worker. So this step of the consumer, which only workers load, stands before and
around all that Celery does with a message, from any writer and for any task:

1. It checks the message (validation.py), because some parts break the main process later, in its loop.
2. It refuses a message that the check refuses, that cannot be decoded, or at which Celery raises an error of data:
   the message is logged in one line, rejected, and not requeued. If it is for a tracked job, that ends as Error.
3. It refuses a message for a task that the worker does not know. Celery would log all its headers.

Other errors stay as they are: a connection that is lost, memory that is full, a worker that is told to end.

A job also ends here, in the main process, if its message was revoked or has expired, or if its run took longer
than its hard limit: the job's code never learns of it. If the database is away, that is logged. Then a job without
a run is sent again later, and a run whose process was killed is released.
"""

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from billiard.exceptions import TimeLimitExceeded, WorkerLostError
from celery import bootsteps, signals
from celery.exceptions import NotRegistered
from celery.utils.objects import Bunch
from celery.worker import state
from celery.worker.request import Request
from django.db import DatabaseError, connection

from harbor_refresh.executions.errors import DatabaseAway, Refused
from harbor_refresh.executions.status import Status
from harbor_refresh.executions.text import is_text, made_storable, said_by, shown
from harbor_refresh.tasks.jobs.messages.validation import HEADER, MESSAGE, fields_of, refuse_unusable, run_of
from harbor_refresh.tasks.jobs.nodes import this_worker
from harbor_refresh.tasks.jobs.outcomes import MAX_MESSAGE, Outcome, Run, take

log = logging.getLogger("harbor_refresh")

#: What reading the parts of a message raises. None of them is an error of a server or of the system.
OF_DATA = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
#: A failure that is never the fault of a message. Some errors of a connection are an OSError and a ValueError.
OF_THE_SYSTEM = (MemoryError, OSError)
MAX_JOB = 64


class MessageGuard(bootsteps.Step):
    def __init__(self, consumer: Any, **options: Any) -> None:
        super().__init__(consumer, **options)
        make = consumer.create_task_handler
        consumer.on_decode_error = partial(refuse, consumer)
        consumer.create_task_handler = lambda: partial(_receive, consumer, make())


def _receive(consumer: Any, receive: Callable[[Any], None], message: Any) -> None:
    try:
        name = fields_of(message)["task"]
        refuse_unusable(consumer.app.tasks.get(name), message)
    except MemoryError:
        raise
    except Exception as exc:  # the check asks no server
        refuse(consumer, message, exc)
        return
    if name not in consumer.strategies:
        _refuse_unknown(consumer, message)
        return
    try:
        receive(message)
    except OF_THE_SYSTEM:
        raise
    except OF_DATA as exc:
        refuse(consumer, message, exc)


def refuse(consumer: Any, message: Any, exc: Exception) -> None:
    """Refuse one message. Its job is ended before its message is rejected: if the process dies in between, the
    message comes again and finds the job ended."""
    why = str(exc) if isinstance(exc, Refused) else f"{MESSAGE} cannot be read: {type(exc).__name__}: {exc}"
    try:
        fields = fields_of(message)
    except Exception:
        fields = message.headers
    _log_dropped(fields, why)
    end(fields.get("id"), fields.get(HEADER), Status.ERROR, why)
    _reject(consumer, message)
    signals.task_rejected.send(sender=consumer, message=message, exc=exc)


def _refuse_unknown(consumer: Any, message: Any) -> None:
    """Refuse the message of a task that this worker does not know, as Celery does: its result is a failure."""
    fields = fields_of(message)
    job, name = fields["id"], fields["task"]
    why = f"the worker that got it knows no task {name!r}"
    _log_dropped(fields, why)
    end(job, fields.get(HEADER), Status.ERROR, why)
    _reject(consumer, message)
    answer = {one: message.properties.get(one) for one in ("correlation_id", "reply_to")}
    request = Bunch(name=name, chord=None, errbacks=None, root_id=fields.get("root_id"), **answer)
    error = NotRegistered(name)
    with suppress(*OF_DATA):  # such as a place for the answer that is none
        consumer.app.backend.mark_as_failure(job, error, request=request)
    if consumer.event_dispatcher:
        consumer.event_dispatcher.send("task-failed", uuid=job, exception=repr(error))
    signals.task_unknown.send(sender=consumer, message=message, exc=error, name=name, id=job)


def _reject(consumer: Any, message: Any) -> None:
    """Reject it, unless it needs no acknowledgement or has had it."""
    needs_none = message.delivery_info.get("consumer_tag") in (message.channel.no_ack_consumers or ())
    if not needs_none and not message.acknowledged:
        message.reject_log_error(log, consumer.connection_errors)


class TrackedRequest(Request):
    """The request of a job, which the main process of a worker keeps while another process runs it."""

    def on_timeout(self, soft: bool, timeout: float) -> Any:
        """Write a hard limit before Celery acknowledges the message. If this process dies in between, the run is
        released."""
        if not soft and not state.should_terminate:
            header, why = self.request_dict.get(HEADER), said_by(TimeLimitExceeded(timeout))
            end(self.id, header, Status.ERROR, why, has_begun=True)
        return super().on_timeout(soft, timeout)

    def on_failure(self, exc_info: Any, *args: Any, **options: Any) -> Any:
        """Have the runs of a process that died released at once."""
        if isinstance(getattr(exc_info, "exception", None), WorkerLostError):
            this_worker.wake()
        return super().on_failure(exc_info, *args, **options)


def on_revoked(request: Any, terminated: bool, **_: Any) -> None:
    header = request.get(HEADER)
    if terminated:
        end(request.id, header, Status.STOPPED, "it was revoked while it ran", has_begun=True)
    else:
        end(request.id, header, Status.STOPPED, "it was revoked")


def _log_dropped(fields: Mapping[str, Any], why: str) -> None:
    why = made_storable(" ".join(why[:MAX_MESSAGE].split()))
    if HEADER in fields:
        log.error("Dropped the message of job %s: %s", shown(fields.get("id")), why)
    else:
        log.error("Dropped a message for the task %s: %s", shown(fields.get("task")), why)


def end(job: Any, header: Any, status: Status, why: str, *, has_begun: bool = False) -> None:
    """End the job of a dropped message, if no run has begun: sent -> ended; or its run, which `has_begun` and
    whose process is killed: running -> ended. A message that names no job ends none. Log that the database is
    away, or refuses, and do not raise: no message may end a worker."""
    found = run_of(header)
    if found is None or not is_text(job, MAX_JOB, at_least=1):
        return
    task_id, number = found
    its = Run(task_id, job, number + 1, node=this_worker.id) if has_begun else Run(task_id, job, number)
    why = made_storable(why)[:MAX_MESSAGE]
    try:
        take([Outcome(its, status, why)])
    except (DatabaseAway, DatabaseError) as exc:
        log.warning("Could not write of task %d that %s: %s", task_id, why, exc)
    finally:
        connection.close()  # the main process keeps none


def connect() -> None:
    signals.task_revoked.connect(on_revoked, dispatch_uid="tasks.jobs.guard.revoked")
