"""The queue of executions whose status may be out of date: two sets in Redis, and the operations on them."""

from functools import cache

from tasks.conf import refresh_settings
from tasks.queue.connection import patient, single
from tasks.queue.queue import ExecutionQueue

__all__ = ["ExecutionQueue", "execution_queue"]


@cache
def execution_queue() -> ExecutionQueue:
    """Return the queue of this process, built from the settings. It connects on first use."""
    return ExecutionQueue(refresh_settings(), patient(), single())
