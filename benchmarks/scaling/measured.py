"""The measured points of docs/benchmarks.md, and how close the simulation must come to each.

All are of one machine with two cores, workers of two processes and executions of four tasks. The tolerance is
the noise of the measurements: figures of that machine vary from one run to the next.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from benchmarks.scaling.costs import Costs
from benchmarks.scaling.drain import drain
from benchmarks.scaling.drained import Drained
from benchmarks.scaling.fleet import one_machine


@dataclass(frozen=True)
class Point:
    what: str
    #: The section of docs/benchmarks.md.
    section: str
    workers: int
    waiting: int
    unit: str
    measured: float
    tolerance: float
    read: Callable[[Drained], float]

    def __str__(self) -> str:
        return f"{self.what}, {self.waiting:,} waiting, {self.workers} workers"

    def modelled(self, costs: Costs | None = None) -> float:
        return self.read(_drained(self.workers, self.waiting) if costs is None else self._with(costs))

    def _with(self, costs: Costs) -> Drained:
        return drain(one_machine(self.workers), self.waiting, costs)

    def off_by(self, costs: Costs | None = None) -> float:
        """Return the difference as a share of what was measured."""
        return self.modelled(costs) / self.measured - 1

    def is_met(self, costs: Costs | None = None) -> bool:
        return abs(self.off_by(costs)) <= self.tolerance


@cache
def _drained(workers: int, waiting: int) -> Drained:
    return drain(one_machine(workers), waiting)


def _seconds(found: Drained) -> float:
    return found.seconds or 0.0


STRATEGIES, BACKLOG, WORKERS = "The strategies", "Cost against backlog", "Throughput against workers"
POINTS: Sequence[Point] = (
    *(
        Point("time to drain", BACKLOG, 2, waiting, "s", seconds, tolerance, _seconds)
        for waiting, seconds, tolerance in (
            (1_000, 0.132, 0.15),
            (10_000, 0.289, 0.15),
            (100_000, 1.49, 0.1),
            (1_000_000, 15.6, 0.1),
        )
    ),
    Point("time to drain", STRATEGIES, 2, 300_000, "s", 4.47, 0.1, _seconds),
    *(
        Point("time to drain", WORKERS, workers, 200_000, "s", seconds, 0.15, _seconds)
        for workers, seconds in ((1, 3.2), (2, 2.83), (3, 2.62), (4, 2.92))
    ),
    Point("processor time of Redis", STRATEGIES, 2, 300_000, "s", 2.25, 0.1, lambda one: one.redis_seconds),
    Point("processor time of Redis", BACKLOG, 2, 1_000_000, "s", 8.57, 0.1, lambda one: one.redis_seconds),
    Point("commands of Redis", STRATEGIES, 2, 300_000, "", 4_708, 0.15, lambda one: one.redis_commands),
    Point("SQL statements", STRATEGIES, 2, 300_000, "", 264, 0.15, lambda one: one.statements),
)
