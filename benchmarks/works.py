"""What a node process can do on `go`: a cycle of its strategy, or one of the two limits.

`limit` is what the database alone allows: the same set-based statements over a range of ids, no Redis.
`redis` is what the plain commands cost Redis: pop members, note their tokens, strike them off; no script, no
database.
"""

import os
import time
from collections.abc import Callable
from typing import cast

from django.conf import settings
from django.db import connection
from redis import Redis

from executions import usecases
from executions.queue.connection import patient, single
from executions.strategies import strategy
from executions.usecases.refreshing import Refreshed
from tasks import heartbeat

Work = Callable[[], dict[str, int]]

AT_ONCE = 1_000
QUEUE, PROCESSING = "bench:queue", "bench:processing"


def prepared(mode: str, first: int, last: int) -> Work:
    """The work of that mode, with its connections made, so that making them is not in the measure."""
    if mode == "redis":
        client = Redis.from_url(settings.REDIS_URL)
        client.ping()
        return lambda: _take_all(client)
    connection.ensure_connection()
    if mode == "limit":
        return lambda: _told(_bare_loop(first, last))
    return _cycle()


def recover() -> int:
    return usecases.recover()


def _cycle() -> Work:
    chosen = strategy()
    for client in (patient(), single()):
        client.ping()
    if chosen.name == "claim":
        heartbeat.start()
    return lambda: _told(chosen.cycle())


def _told(outcome: Refreshed) -> dict[str, int]:
    return {"succeeded": outcome.succeeded, "failed": len(outcome.failed), "busy": len(outcome.busy)}


def _bare_loop(first: int, last: int) -> Refreshed:
    total = Refreshed()
    for start in range(first, last + 1, settings.REFRESH_CHUNK):
        total += usecases.refresh(range(start, min(start + settings.REFRESH_CHUNK, last + 1)))
    return total


def _take_all(client: Redis) -> dict[str, int]:
    taken = 0
    while members := cast("list[bytes]", client.spop(QUEUE, AT_ONCE)):
        stamp = time.time_ns() // 1_000
        tokens = [b"%b:%d:%d" % (member, os.getpid(), stamp) for member in members]
        client.sadd(PROCESSING, *tokens)
        client.srem(PROCESSING, *tokens)
        taken += len(members)
    return {"succeeded": taken, "failed": 0, "busy": 0}
