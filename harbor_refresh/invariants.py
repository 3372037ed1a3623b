"""What must hold after every fault, K1 to K4, asked of the servers as they stand.

Owns the questions; every fault test, the benchmark and `simulate` ask them here, so that they
cannot mean different things. Changes nothing. The answers are about a system at rest: while work is
under way K1 and K2 are rightly false.
"""

from collections.abc import Callable
from dataclasses import dataclass

from executions.database import Statements
from tasks.conf import refresh_settings
from tasks.queue import execution_queue
from tasks.strategies import older_strategy

run = Statements(__package__)


@dataclass(frozen=True)
class Violation:
    """One thing that must not be. `execution_id` is None where it concerns no single execution."""

    name: str
    execution_id: int | None
    what: str

    def __str__(self) -> str:
        who = "" if self.execution_id is None else f"execution {self.execution_id} "
        return f"{self.name}: {who}{self.what}"


Broker = Callable[[], int]


def violations(*, broker: Broker | None = None, at_most: int | None = None) -> list[Violation]:
    """Everything that violates K1 to K4, in that order; an empty list is what one hopes for.

    `broker` tells how many messages the broker still holds, unacked ones included: only the caller
    knows Celery. `at_most` bounds the list, for each of the four. Executions in quarantine are not
    in K1: they are known to differ, see `set_aside`.
    """
    return [
        *_asked("K1", "check_rollup", quarantined=False, at_most=at_most),
        *_not_drained(broker),
        *_asked("K3", "check_history", at_most=at_most),
        *_asked("K4", "check_reopenings", at_most=at_most),
    ]


def set_aside(*, at_most: int | None = None) -> list[Violation]:
    """The executions in quarantine whose status differs from their tasks."""
    return _asked("K1", "check_rollup", quarantined=True, at_most=at_most)


def _asked(name: str, statement: str, **values: object) -> list[Violation]:
    return [Violation(name, execution_id, what) for execution_id, what in run(statement, **values)]


def _not_drained(broker: Broker | None) -> list[Violation]:
    """K2. Where nothing is queued at all (an interval ≤ 0) there is nothing to drain.

    Queue and processing in one look, and last: what moves between them is seen in one of the two.
    """
    if refresh_settings().in_process:
        return []
    older = older_strategy()
    elsewhere = older.backlog() if older else 0
    stats = execution_queue().stats()
    left = {
        "executions wait in the queue": max(elsewhere, stats.backlog),
        "executions are in processing": stats.in_flight,
        "messages are with the broker": broker() if broker else 0,
    }
    return [Violation("K2", None, f"{count} {where}") for where, count in left.items() if count]
