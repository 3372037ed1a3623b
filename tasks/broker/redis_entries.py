"""Kombu's transport for Redis, which drops an entry of a queue that is no message.

Any program with access to Redis can push to the list of a queue, or publish to a channel. An entry that is no
JSON, or that lacks a part, raises where the worker reads it: the worker ends, or connects again. This transport
logs such an entry, and the worker goes on. Redis has removed the entry by then, so there is nothing to
acknowledge.

The connections of our Celery app use it (amqp_connection.py), and so does harbor_refresh/redis_transport.py.
"""

import logging
from typing import Any

from kombu.transport import redis, virtual
from kombu.utils.json import loads

from harbor_refresh.executions.text import made_storable, refuse_nesting, said_by, shown, storable
from harbor_refresh.tasks.broker.amqp_transport import is_raised_in

log = logging.getLogger("harbor_refresh")

MAX_WHY = 200
#: Python reads nearly 1,000 levels of JSON. Kombu writes the message again, somewhat deeper in its calls, to note
#: that it was fetched. With fewer levels, the guard of messages ends the job (tasks/jobs/messages/guard.py).
MAX_LEVELS = 910


class NoMessage(Exception):
    """An entry of a queue is no message of kombu."""


class Message(virtual.Message):
    def __init__(self, payload: Any, channel: Any = None, **options: Any) -> None:
        try:
            refuse_nesting(payload, levels=MAX_LEVELS)
            super().__init__(payload, channel=channel, **options)
            _refuse_place(self.delivery_tag, self.delivery_info)
        except MemoryError:
            raise
        except Exception as exc:  # no part of it needs a server
            raise NoMessage(said_by(exc)) from exc


def _refuse_place(tag: Any, place: Any) -> None:
    """Raise ValueError unless kombu can note with these that the message was fetched, and put it back."""
    if not storable(tag):
        raise ValueError(f"delivery_tag takes text, and got {shown(tag)}")
    if not isinstance(place, dict) or not all(
        isinstance(place[part], str | None) for part in ("exchange", "routing_key")
    ):
        raise ValueError(f"delivery_info takes the names of an exchange and a key, and got {shown(place)}")


def _dropped(exc: Exception) -> bool:
    """Log that an entry is no JSON. Raise an error that has another cause, such as a broken connection."""
    if not is_raised_in(exc, loads):
        raise exc
    _log_dropped("of this worker", f"it is no JSON: {said_by(exc)}")
    return True


def _log_dropped(queue: str, why: str) -> None:
    why = made_storable(" ".join(why[:MAX_WHY].split()))
    log.error("Dropped an entry of the queue %s, because it is no message: %s", queue, why)


class Channel(redis.Channel):
    """Reads each entry."""

    Message: Any = Message

    def _brpop_read(self, **options: Any) -> Any:
        try:
            return super()._brpop_read(**options)  # type: ignore[misc]
        except Exception as exc:
            return _dropped(exc)

    def _receive(self) -> Any:
        try:
            return super()._receive()  # type: ignore[misc]
        except Exception as exc:
            return _dropped(exc)


class Transport(redis.Transport):
    """Gives each entry to the consumer of its queue."""

    Channel: Any = Channel

    def _deliver(self, message: Any, queue: Any) -> None:
        try:
            super()._deliver(message, queue)
        except NoMessage as exc:
            _log_dropped(shown(queue), str(exc))


class SentinelChannel(redis.SentinelChannel, Channel):
    pass


class SentinelTransport(redis.SentinelTransport, Transport):
    Channel = SentinelChannel
