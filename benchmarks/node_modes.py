"""The modes of a node process: what it does on `go`.

| mode | work |
| --- | --- |
| `cycle` | one cycle of the strategy |
| `limit` | the product's set-based statements over a range of ids, without Redis |
| `redis` | pop members, add and remove their tokens by plain commands, without scripts or the database |
"""

import os
import time
from collections.abc import Callable
from typing import cast

from django.conf import settings
from django.db import connection
from redis import Redis

from benchmarks.designs import strategy
from harbor_refresh.executions.lifecycle.rollup import Refreshed, refresh
from harbor_refresh.tasks.conf import pacing
from harbor_refresh.tasks.pipeline import heartbeat, recovery
from harbor_refresh.tasks.queue.connection import patient, single

Work = Callable[[], dict[str, int]]

AT_ONCE = 1_000
QUEUE, PROCESSING = "bench:queue", "bench:processing"


def prepare(mode: str, first: int, last: int) -> Work:
    """Open the connections, so that opening them is not measured, and return the work of that mode."""
    if mode == "redis":
        client = Redis.from_url(settings.REDIS_URL)
        client.ping()
        return lambda: _pop_all(client)
    connection.ensure_connection()
    if mode == "limit":
        return lambda: _counts(_bare_loop(first, last))
    return _cycle()


def recover() -> int:
    return recovery.recover()


def _cycle() -> Work:
    chosen = strategy()
    for client in (patient(), single()):
        client.ping()
    if chosen.name == "claim":
        heartbeat.start()
    return lambda: _counts(chosen.cycle())


def _counts(outcome: Refreshed) -> dict[str, int]:
    return {"succeeded": outcome.succeeded, "failed": len(outcome.failed), "locked": len(outcome.locked)}


def _bare_loop(first: int, last: int) -> Refreshed:
    total = Refreshed()
    chunk = pacing.CHUNK
    for start in range(first, last + 1, chunk):
        total += refresh(range(start, min(start + chunk, last + 1)))
    return total


def _pop_all(client: Redis) -> dict[str, int]:
    taken = 0
    while members := cast("list[bytes]", client.spop(QUEUE, AT_ONCE)):
        stamp = time.time_ns() // 1_000
        tokens = [b"%b:%d:%d" % (member, os.getpid(), stamp) for member in members]
        client.sadd(PROCESSING, *tokens)
        client.srem(PROCESSING, *tokens)
        taken += len(members)
    return {"succeeded": taken, "failed": 0, "locked": 0}
