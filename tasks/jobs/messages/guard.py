"""Refuse each message that a worker cannot use, from any writer and for any task.

Celery's main process reads a message in several places, and an error in most of them ends the worker. The broker
then gives the message to the next worker. So this step of the consumer stands before and around all that Celery
does with a message:

1. It checks the message (validation.py), because some parts break the main process later, in its loop.
2. It refuses a message that the check refuses, that cannot be decoded, or at which Celery raises an error of data:
   the message is logged in one line, rejected, and not requeued. If it is for a tracked job, that ends as Error.
3. It refuses a message for a task that the worker does not know. Celery would log all its headers.

Other errors stay as they are: a connection that is lost, memory that is full, a worker that is told to end. The
Celery app names this step (`GUARD`), and only workers load it.
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from celery import bootsteps, signals
from celery.exceptions import NotRegistered
from celery.utils.objects import Bunch

from harbor_refresh.executions.errors import Refused
from harbor_refresh.tasks.jobs.messages import celery_events
from harbor_refresh.tasks.jobs.messages.validation import MESSAGE, fields_of, refuse_unusable

log = logging.getLogger("harbor_refresh")

#: What reading the parts of a message raises. None of them is an error of a server or of the system.
OF_DATA = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
#: A failure that is never the fault of a message. Some errors of a connection are an OSError and a ValueError.
OF_THE_SYSTEM = (MemoryError, OSError)

Receive = Callable[[Any], None]


class MessageGuard(bootsteps.Step):
    def __init__(self, consumer: Any, **options: Any) -> None:
        super().__init__(consumer, **options)
        make = consumer.create_task_handler
        consumer.on_decode_error = partial(refuse, consumer)
        consumer.create_task_handler = lambda: partial(_receive, consumer, make())


def _receive(consumer: Any, receive: Receive, message: Any) -> None:
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
    celery_events.on_unusable(fields, why)
    _reject(consumer, message)
    signals.task_rejected.send(sender=consumer, message=message, exc=exc)


def _refuse_unknown(consumer: Any, message: Any) -> None:
    """Refuse the message of a task that this worker does not know, as Celery does: its result is a failure."""
    fields = fields_of(message)
    job, name = fields["id"], fields["task"]
    celery_events.log_dropped(fields, "this worker knows no task of that name")
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
