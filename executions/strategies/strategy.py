"""What every design can do."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # the use cases import this package
    from executions.usecases.refreshing import Refreshed


class Strategy(Protocol):
    """A design: where marks are kept, and what a node does when a tick comes. Keeps nothing in memory.

    All of them raise QueueUnavailable if Redis is away.
    """

    @property
    def name(self) -> str: ...

    @property
    def everywhere(self) -> bool:
        """A tick must reach every live worker, for each does its part; else any one of them will do."""
        ...

    def mark(self, members: Sequence[str]) -> bool:
        """Note that these members (`ID:VENDOR`) may be out of date; twice is once. True if the caller must
        send a tick at once."""
        ...

    def cycle(self) -> "Refreshed":
        """What one node does when a tick comes: all that it finds for itself, here and now. A database that
        goes away ends the cycle and is told; what was not done stays marked."""
        ...

    def lost(self, members: Sequence[str]) -> list[str]:
        """Those of the members that are marked nowhere."""
        ...

    def backlog(self) -> int:
        """How many are marked and not yet begun."""
        ...
