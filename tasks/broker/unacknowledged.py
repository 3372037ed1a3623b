"""Messages that workers have fetched and not acknowledged, where the broker is a Redis.

Kombu keeps them in a hash by their tag, and when each was fetched in a sorted set. It puts a message back into its
queue when the visibility timeout is over. RabbitMQ needs none of this: it sees that a worker is gone.
"""

import json
import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from harbor_refresh.tasks.broker.pooled import pooled_channel
from harbor_refresh.tasks.queue.sets import PAGE, pages

log = logging.getLogger("harbor_refresh")


@dataclass(frozen=True)
class Fetched:
    tag: bytes
    headers: dict[str, Any]


def fetched_before(moment: float) -> Iterator[list[Fetched]]:
    """Yield the messages that were fetched before this moment (Unix seconds, by the clock of the worker that
    fetched each), in pages, the latest first. No connection is held between two pages."""
    for tags in pages(_tags_before(moment), PAGE):
        yield _messages(tags)


def put_back(tags: Iterable[bytes]) -> None:
    """Put messages back into their queues, where they are the next to be fetched. One that was acknowledged
    meanwhile stays gone."""
    with _channel_of_redis() as channel:
        if channel is not None:
            for tag in tags:
                channel.qos.restore_by_tag(tag)


def note_again() -> int:
    """Note that messages were fetched whose note Redis has lost, and return how many.

    Without the note a message is never put back, so it stays for ever if its worker has died. Kombu writes both in
    one transaction, so each message has a note unless Redis has lost some. They count as fetched now, and come
    back after the visibility timeout. One of a live worker comes twice then, which is harmless.

    Only their numbers are compared: as many notes without a message hide as many messages without a note, until
    kombu drops those notes.

    What if a message is acknowledged meanwhile: the note of no message is left. Kombu drops it when it is due.
    """
    with _channel_of_redis() as channel:
        if channel is None:
            return 0
        try:
            count = _note_again(channel)
        except channel.ResponseError:  # it is full, or this user may not ask
            return 0
    if count:
        log.warning("Noted again that %d messages were fetched: Redis had lost that", count)
    return count


def _note_again(channel: Any) -> int:
    client = channel.client
    prefix = getattr(client, "global_keyprefix", "")  # kombu writes it before the keys of some commands alone
    if client.hlen(channel.unacked_key) <= client.zcard(prefix + channel.unacked_index_key):
        return 0
    count, now, cursor = 0, time.time(), None
    while cursor != 0:
        cursor, found = client.hscan(prefix + channel.unacked_key, cursor or 0, count=PAGE)
        if found:
            count += client.zadd(channel.unacked_index_key, dict.fromkeys(found, now), nx=True)
    return count


def _tags_before(moment: float) -> list[bytes]:
    with _channel_of_redis() as channel:
        if channel is None:
            return []
        found: list[bytes] = channel.client.zrange(channel.unacked_index_key, moment, 0, desc=True, byscore=True)
        return found


def _messages(tags: Sequence[bytes]) -> list[Fetched]:
    """Return these messages, without those that are gone, or that another program wrote."""
    with _channel_of_redis() as channel, channel.client.pipeline(transaction=False) as pipe:
        for tag in tags:
            pipe.hget(channel.unacked_key, tag)  # the commands that kombu itself needs, and no other
        found = zip(tags, map(_headers, pipe.execute()), strict=True)
    return [Fetched(tag, headers) for tag, headers in found if headers is not None]


def _headers(raw: bytes | None) -> dict[str, Any] | None:
    try:
        headers = json.loads(raw or b"")[0]["headers"]
    except (ValueError, LookupError, TypeError):
        return None
    return headers if isinstance(headers, dict) else None


@contextmanager
def _channel_of_redis() -> Iterator[Any]:
    with pooled_channel() as (driver, channel):
        yield channel if driver == "redis" else None
