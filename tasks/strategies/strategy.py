"""The interface of the older designs. A tick reaches every live worker, and each does its part."""

from collections.abc import Sequence
from typing import Protocol

from harbor_refresh.executions.rollup import Refreshed


class Strategy(Protocol):
    """Where marks are kept, and what a node does when a tick comes. It keeps nothing in memory.

    All methods raise QueueUnavailable if Redis is away.
    """

    @property
    def name(self) -> str: ...

    def connect(self) -> None:
        """Connect to the signals of Celery, when Django is ready."""
        ...

    def mark(self, members: Sequence[str]) -> None:
        """Note that these members (`ID:VENDOR`) may be out of date. Marking a member twice changes nothing."""
        ...

    def cycle(self) -> Refreshed:
        """Refresh, in this process and at once, every execution that this node finds for itself. If the
        database goes away, the cycle ends with a signal, and the rest stays marked."""
        ...

    def lost(self, members: Sequence[str]) -> list[str]:
        """Return the members that are not marked."""
        ...

    def backlog(self) -> int:
        """Count the members that are marked and not begun yet."""
        ...
