"""The seam between the pipeline and the design that keeps marks."""

from collections.abc import Sequence
from typing import Protocol

from harbor_refresh.executions.lifecycle.rollup import Refreshed


class Strategy(Protocol):
    """Where marks are kept, and what a node does when a tick comes. It keeps nothing in memory.

    `runs_cycles` is true of the older designs: a tick reaches every live worker, and each runs a cycle.

    All methods raise QueueUnavailable if Redis is away.
    """

    @property
    def name(self) -> str: ...

    @property
    def runs_cycles(self) -> bool: ...

    def connect(self) -> None:
        """Connect to the signals of Celery, when Django is ready."""
        ...

    def mark(self, members: Sequence[str]) -> bool:
        """Note that these members (`ID:VENDOR`) may be out of date; a second mark changes nothing. True if the
        caller must send a tick, because no other process will."""
        ...

    def wake(self, *, ignore_pending_wake: bool, ignore_empty_queue: bool) -> bool:
        """Whether a tick must be sent before that of the schedule (tasks/pipeline/wakeup.py)."""
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


class Cycles:
    """What the older designs share: they wait for the schedule."""

    runs_cycles = True

    def wake(self, *, ignore_pending_wake: bool, ignore_empty_queue: bool) -> bool:
        return False
