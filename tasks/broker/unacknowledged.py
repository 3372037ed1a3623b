"""Messages that workers have fetched and not acknowledged, where the broker is a Redis.

Kombu keeps them in a hash by their tag, and when each was fetched in a sorted set. It puts a message back into its
queue when the visibility timeout is over. RabbitMQ needs none of this: it sees that a worker is gone.
"""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from celery import current_app

from tasks.broker import rabbitmq


@dataclass(frozen=True)
class Fetched:
    tag: bytes
    headers: dict[str, Any]


def fetched_before(moment: float, most: int) -> list[Fetched]:
    """Return messages that were fetched before this moment (Unix seconds, by the clock of the worker that fetched
    each), the latest first."""
    with _channel_of_redis() as channel:
        if channel is None:
            return []
        tags = channel.client.zrange(
            channel.unacked_index_key, moment, 0, desc=True, byscore=True, offset=0, num=most
        )
        with channel.client.pipeline(transaction=False) as pipe:
            for tag in tags:
                pipe.hget(channel.unacked_key, tag)  # the commands that kombu itself needs, and no other
            found = pipe.execute()
    messages = zip(tags, map(_headers, found), strict=True)
    return [Fetched(tag, headers) for tag, headers in messages if headers is not None]


def put_back(tags: Iterable[bytes]) -> None:
    """Put messages back into their queues, where they are the next to be fetched. One that was acknowledged
    meanwhile stays gone."""
    with _channel_of_redis() as channel:
        if channel is not None:
            for tag in tags:
                channel.qos.restore_by_tag(tag)


def _headers(raw: bytes | None) -> dict[str, Any] | None:
    """Return the headers of a message; None if it is gone, or if another program wrote it."""
    try:
        headers = json.loads(raw or b"")[0]["headers"]
    except (ValueError, LookupError, TypeError):
        return None
    return headers if isinstance(headers, dict) else None


@contextmanager
def _channel_of_redis() -> Iterator[Any]:
    with current_app.pool.acquire(block=True) as acquired:
        connection: Any = acquired  # the stubs take it for a producer
        is_rabbitmq = connection.transport.driver_type == rabbitmq.DRIVER
        yield None if is_rabbitmq else connection.default_channel
