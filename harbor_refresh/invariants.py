"""The invariants K1 to K4, which must hold after every fault, checked on the servers' current state.

Owns the checks: every fault test, the benchmark and `simulate` use these, so that they all check the same.
Changes nothing. The invariants hold for a system at rest; while work is in progress, K1 and K2 are rightly
false.
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
    """A violation of an invariant. `execution_id` is None if it concerns no single execution."""

    name: str
    execution_id: int | None
    what: str

    def __str__(self) -> str:
        subject = "" if self.execution_id is None else f"execution {self.execution_id} "
        return f"{self.name}: {subject}{self.what}"


Broker = Callable[[], int]


def violations(*, broker: Broker | None = None, at_most: int | None = None) -> list[Violation]:
    """List the violations of K1 to K4, in that order. The list is empty if all hold.

    `broker` returns how many messages the broker still holds, unacknowledged ones included, because only the
    caller knows Celery. `at_most` bounds the list, for each of the four. K1 leaves out executions in
    quarantine, because they are known to differ: see `set_aside`.
    """
    return [
        *_asked("K1", "check_rollup", quarantined=False, at_most=at_most),
        *_asked("K1", "check_links", at_most=at_most),
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
    """K2: all queues are empty. If nothing is ever queued (an interval ≤ 0), there is nothing to drain.

    Queue and processing are read last and in one call, so that a member that moves between them is seen in one.
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
