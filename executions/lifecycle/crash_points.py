"""Named points in the refresh of an execution and around it, where a fault test may end the process.

In production no handler is registered, so a point costs one look into an empty list.
"""

from collections.abc import Callable, Sequence
from typing import Any

Handler = Callable[[str, Sequence[int]], None]
handlers: list[Handler] = []


def reach(point: str, executions: Any) -> None:
    """Call the handlers with the ids given, or those of a claim, which are parsed only for a handler."""
    for handle in handlers:
        handle(point, getattr(executions, "ids", executions))
