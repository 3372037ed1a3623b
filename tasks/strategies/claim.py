"""`claim`, the product: a set of marks in Redis, from which ticks claim batches (tasks/queue, tasks/pipeline)."""

from collections.abc import Sequence

from harbor_refresh.executions.lifecycle.rollup import Refreshed
from harbor_refresh.tasks.queue import execution_queue
from harbor_refresh.tasks.strategies.strategy import Strategy


class Claim(Strategy):
    name = "claim"
    runs_cycles = False

    def mark(self, members: Sequence[str]) -> bool:
        return execution_queue().mark(members).wake

    def cycle(self) -> Refreshed:
        raise NotImplementedError("a tick claims, and subtasks refresh")

    def lost(self, members: Sequence[str]) -> list[str]:
        return execution_queue().lost(members)

    def backlog(self) -> int:
        return execution_queue().stats().backlog
