"""Waiting until the queue is empty, and what is to be said while nothing happens."""

import time
from collections.abc import Callable

from executions.conf import refresh_settings
from executions.errors import QueueUnavailable
from executions.invariants import Violation, violations
from executions.queue import Stats, execution_queue

LOOK_SECONDS = 0.2
SETTLE_SECONDS = 5.0
START_A_WORKER = "Start one with: celery -A harbor_refresh worker --loglevel=INFO"

Watch = Callable[[Stats | None], None]


class NotDrained(Exception):
    """The queue did not become empty in time."""


def drain(timeout: float, watch: Watch = lambda stats: None) -> None:
    """Wait until queue and processing are empty. `watch` gets each look; None: Redis is away.

    Raises NotDrained after `timeout` seconds, with what a person can do about it.
    """
    if refresh_settings().in_process:
        return
    deadline = time.monotonic() + timeout
    while True:
        stats = _look()
        watch(stats)
        if stats and not stats.backlog and not stats.in_flight:
            return
        if time.monotonic() >= deadline:
            raise NotDrained(f"The queue did not drain in {timeout:g} s: {describe(stats)}")
        time.sleep(LOOK_SECONDS)


def describe(stats: Stats | None) -> str:
    """One line for a person: what waits, who works it, and what to type if that is nobody."""
    if stats is None:
        return "Redis cannot be reached. Check REDIS_URL, and that the server is up."
    waits = f"{stats.backlog:,} in the queue, {stats.in_flight:,} in processing"
    if not stats.nodes:
        return f"{waits}, and no worker gives a sign of life. {START_A_WORKER}"
    if stats.pause_ms:
        return f"{waits}, {len(stats.nodes)} live processes; they pause because the database was away."
    return f"{waits}, {len(stats.nodes)} live processes."


def lasting_violations() -> list[Violation]:
    """The violations that are still there after SETTLE_SECONDS.

    Somebody else may be reporting meanwhile, and what they have just reported is out of date for
    a moment. What is wrong for good stays wrong.
    """
    found = violations()
    deadline = time.monotonic() + SETTLE_SECONDS
    while found and time.monotonic() < deadline:
        time.sleep(LOOK_SECONDS)
        same = {(one.name, one.execution_id) for one in found}
        found = [one for one in violations() if (one.name, one.execution_id) in same]
    return found


def _look() -> Stats | None:
    try:
        return execution_queue().stats()
    except QueueUnavailable:
        return None
