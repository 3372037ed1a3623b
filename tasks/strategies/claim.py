"""`claim`, the product: a set of marks in Redis, from which ticks claim batches (tasks/queue, tasks/pipeline)."""

from collections.abc import Sequence

from harbor_refresh.executions.lifecycle.rollup import Refreshed
from harbor_refresh.executions.news.steps import step
from harbor_refresh.tasks.queue import execution_queue


class Claim:
    name = "claim"
    runs_cycles = False

    def connect(self) -> None:
        """Nothing: the pipeline connects by itself."""

    def mark(self, members: Sequence[str]) -> bool:
        with step("mark", members=members):
            return execution_queue().mark(members).wake

    def wake(self, *, ignore_pending_wake: bool, ignore_empty_queue: bool) -> bool:
        return execution_queue().wake(
            ignore_pending_wake=ignore_pending_wake, ignore_empty_queue=ignore_empty_queue
        )

    def cycle(self) -> Refreshed:
        raise NotImplementedError("a tick claims, and subtasks refresh")

    def lost(self, members: Sequence[str]) -> list[str]:
        return execution_queue().lost(members)

    def backlog(self) -> int:
        return execution_queue().stats().backlog
