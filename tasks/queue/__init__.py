"""The queue of executions whose status may be out of date: two sets in Redis, and the verbs over them."""

from functools import cache

from tasks.conf import refresh_settings
from tasks.queue.connection import patient, single
from tasks.queue.queue import ExecutionQueue

__all__ = ["ExecutionQueue", "execution_queue"]


@cache
def execution_queue() -> ExecutionQueue:
    """The queue of this process, by the settings. Connections are made when first used."""
    return ExecutionQueue(refresh_settings(), patient(), single())
