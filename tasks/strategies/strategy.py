"""What every older design can do. A tick reaches every live worker, and each does its part."""

from collections.abc import Sequence
from typing import Protocol

from executions.rollup import Refreshed


class Strategy(Protocol):
    """Where marks are kept, and what a node does when a tick comes. Keeps nothing in memory.

    All of them raise QueueUnavailable if Redis is away.
    """

    @property
    def name(self) -> str: ...

    def connect(self) -> None:
        """Listen to what Celery tells of this worker, when Django is ready."""
        ...

    def mark(self, members: Sequence[str]) -> None:
        """Note that these members (`ID:VENDOR`) may be out of date; twice is once."""
        ...

    def cycle(self) -> Refreshed:
        """What one node does when a tick comes: all that it finds for itself, here and now. A database that
        goes away ends the cycle and is told; what was not done stays marked."""
        ...

    def lost(self, members: Sequence[str]) -> list[str]:
        """Those of the members that are marked nowhere."""
        ...

    def backlog(self) -> int:
        """How many are marked and not yet begun."""
        ...
