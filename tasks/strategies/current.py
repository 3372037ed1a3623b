"""The seam between the pipeline and the design that keeps marks; and `claim`, the product: a set of marks in
Redis, from which ticks claim batches (tasks/queue, tasks/pipeline)."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from harbor_refresh.executions.lifecycle.rollup import Refreshed
from harbor_refresh.tasks.queue import execution_queue


class Strategy(ABC):
    """Where marks are kept, and what a node does when a tick comes. `runs_cycles` is true of the older designs: a
    tick reaches every live worker, each runs a cycle, and marks wait for the schedule. `marks_on_queue`: the marks
    are the members of the set `queue:v2`. All methods raise QueueUnavailable if Redis is down."""

    name: str
    runs_cycles = True
    marks_on_queue = True

    @abstractmethod
    def mark(self, members: Sequence[str]) -> bool:
        """Note that these members (`ID:VENDOR`) may be out of date; a second mark changes nothing. True if the
        caller must send a tick, because no other process will."""

    @abstractmethod
    def cycle(self) -> Refreshed:
        """Refresh, in this process and at once, every execution that this node finds for itself. If the
        database goes down, the cycle ends with a signal, and the rest stays marked."""

    @abstractmethod
    def lost(self, members: Sequence[str]) -> list[str]:
        """Return the members that are not marked."""

    @abstractmethod
    def backlog(self) -> int:
        """Count the members that are marked and not begun yet."""


class ClaimDesign(Strategy):
    name = "claim"
    runs_cycles = False

    def mark(self, members: Sequence[str]) -> bool:
        return execution_queue().mark(members)

    def cycle(self) -> Refreshed:
        raise NotImplementedError("a tick claims, and subtasks refresh")

    def lost(self, members: Sequence[str]) -> list[str]:
        return execution_queue().lost(members)

    def backlog(self) -> int:
        return execution_queue().stats().backlog
