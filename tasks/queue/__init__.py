"""The queue of executions whose status may be out of date: two sets in Redis, and the operations on them."""

from functools import cache

from harbor_refresh.tasks.conf import refresh_settings
from harbor_refresh.tasks.queue.connection import brief, patient, single
from harbor_refresh.tasks.queue.queue import ExecutionQueue

__all__ = ["ExecutionQueue", "brief_queue", "execution_queue"]


@cache
def execution_queue() -> ExecutionQueue:
    """Return the queue of this process, built from the settings. It connects on first use."""
    return ExecutionQueue(refresh_settings(), patient(), single())


@cache
def brief_queue() -> ExecutionQueue:
    """Return the queue for looks and for notes that may be lost: it waits for half a second, once."""
    client = brief()
    return ExecutionQueue(refresh_settings(), client, client)
