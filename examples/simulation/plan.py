"""What each runner will report, from a seed alone: the same mix gives the same plan, move by move.

No clock and no database. All reports of a task are sent by one runner, so its outcome does not depend on the
speed of the runners. The tasks of one execution belong to several runners, so that its reports compete. An
execution that will be stopped belongs to one runner, because its outcome depends on the reports before the stop.
"""

from dataclasses import dataclass
from operator import itemgetter
from random import Random
from typing import NamedTuple

from harbor_refresh.executions.status import Status

VENDORS = (
    "REPLICATION",
    "IMAGE_SCAN",
    "SCAN_ALL",
    "GARBAGE_COLLECTION",
    "RETENTION",
    "P2P_PREHEAT",
    "WEBHOOK",
    "SLACK",
)

#: In the place of a task: the execution as a whole.
WHOLE = -1


@dataclass(frozen=True)
class Mix:
    """The numbers and shares of a plan. Shares are between 0 and 1 and independent of each other."""

    executions: int = 100
    tasks: int = 4
    seed: int = 0
    errors: float = 0.05
    retries: float = 0.05
    stops: float = 0.02
    duplicates: float = 0.05
    late: float = 0.05
    reordered: float = 0.05
    runners: int = 4
    vendors: tuple[str, ...] = VENDORS


class Move(NamedTuple):
    """A runner reports a task, or stops the execution if the task is WHOLE.

    Executions and tasks are counted from 0, because they have no ids yet.
    """

    execution: int
    task: int
    status: Status
    revision: int


@dataclass(frozen=True)
class Plan:
    mix: Mix
    vendors: tuple[str, ...]
    scripts: tuple[tuple[Move, ...], ...]

    def __len__(self) -> int:
        """The number of moves of all runners."""
        return sum(len(script) for script in self.scripts)


Timed = tuple[float, Move]

#: The delay of a late report, on the plan's clock, on which all executions begin between 0 and 1.
LATE = 0.5


def plan(mix: Mix) -> Plan:
    rng = Random(mix.seed)  # noqa: S311 - repeatable is the point
    vendors = tuple(rng.choice(mix.vendors) for _ in range(mix.executions))
    runners: list[list[Timed]] = [[] for _ in range(mix.runners)]
    for execution in range(mix.executions):
        begin, owner = rng.random(), rng.randrange(mix.runners)
        stopped = rng.random() < mix.stops
        for task in range(mix.tasks):
            runner = owner if stopped else (owner + task) % mix.runners
            runners[runner] += _disturb(_reports(mix, rng, execution, task, begin), mix, rng)
        if stopped:
            stop = Move(execution, WHOLE, Status.STOPPED, 0)
            runners[owner].append((begin + rng.uniform(0, 0.3), stop))
    return Plan(mix, vendors, tuple(_sort(moves) for moves in runners))


def _reports(mix: Mix, rng: Random, execution: int, task: int, begin: float) -> list[Timed]:
    """Make the reports of a task: Scheduled, Running, an end. A task that runs again fails first."""
    again = rng.random() < mix.retries
    end = Status.ERROR if rng.random() < mix.errors else Status.SUCCESS
    steps = [
        (Status.SCHEDULED, 0),
        (Status.RUNNING, 0),
        (Status.ERROR if again else end, 0),
    ]
    if again:
        steps += [(Status.RUNNING, 1), (end, 1)]
    moves = []
    for status, revision in steps:
        begin += rng.uniform(0.01, 0.15)
        moves.append((begin, Move(execution, task, status, revision)))
    return moves


def _disturb(reports: list[Timed], mix: Mix, rng: Random) -> list[Timed]:
    """Swap, delay and repeat reports, as a bad network does."""
    times = [time for time, _ in reports]
    for place in range(len(times) - 1):
        if rng.random() < mix.reordered:
            times[place], times[place + 1] = times[place + 1], times[place]
    arrived = []
    for time, (_, move) in zip(times, reports, strict=True):
        arrival = time + LATE if rng.random() < mix.late else time
        arrived.append((arrival, move))
        if rng.random() < mix.duplicates:
            arrived.append((arrival + rng.uniform(0, 0.2), move))
    return arrived


def _sort(moves: list[Timed]) -> tuple[Move, ...]:
    return tuple(move for _, move in sorted(moves, key=itemgetter(0)))
