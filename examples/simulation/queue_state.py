"""The state of the queue: waiting until it is empty, and one line that describes it."""

import time
from collections.abc import Callable

from harbor_refresh.executions.errors import QueueUnavailable
from harbor_refresh.tasks.conf import refresh_settings
from harbor_refresh.tasks.queue import execution_queue
from harbor_refresh.tasks.queue.claim import Stats

POLL_SECONDS = 0.2
START_A_WORKER = "Start one with: celery -A harbor_refresh worker --loglevel=INFO"

Watch = Callable[[Stats | None], None]


class NotDrained(Exception):
    """The queue did not become empty in time."""


def wait_until_drained(timeout: float, watch: Watch = lambda stats: None) -> None:
    """Wait until queue and processing are empty. `watch` is called with all stats; None means that Redis is down.

    Raise NotDrained after `timeout` seconds; its text says what to do.
    """
    if refresh_settings().in_process:
        return
    deadline = time.monotonic() + timeout
    while True:
        stats = _stats()
        watch(stats)
        if stats and not stats.backlog and not stats.in_flight:
            return
        if time.monotonic() >= deadline:
            raise NotDrained(f"The queue did not drain in {timeout:g} s: {describe(stats)}")
        time.sleep(POLL_SECONDS)


def describe(stats: Stats | None) -> str:
    """Describe in one line what waits and how many processes work, and what to type if none does."""
    if stats is None:
        return "Redis cannot be reached. Check REDIS_URL, and that the server is up."
    waits = f"{stats.backlog:,} in the queue, {stats.in_flight:,} in processing"
    if not stats.nodes:
        return f"{waits}, and no worker sends heartbeats. {START_A_WORKER}"
    if stats.pause_ms:
        return f"{waits}, {len(stats.nodes)} live processes; they pause because the database was down."
    return f"{waits}, {len(stats.nodes)} live processes."


def _stats() -> Stats | None:
    try:
        return execution_queue().stats()
    except QueueUnavailable:
        return None
