"""The invariants K1 to K4, which must hold after every fault, checked on the servers' current state.

Owns the checks: every fault test, the benchmark and the simulation use these, so that they all check the same.
Changes nothing. The invariants hold for a system at rest; while work is in progress, K1 and K2 are rightly
false.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from harbor_refresh.executions.attached.attachment import is_attached
from harbor_refresh.executions.database import Statements
from harbor_refresh.executions.lifecycle.housekeeping import HISTORY_KEPT
from harbor_refresh.executions.status import FINAL_CODE
from harbor_refresh.tasks.conf import refresh_settings
from harbor_refresh.tasks.conf.pacing import DANGLING_HOURS
from harbor_refresh.tasks.models import Job
from harbor_refresh.tasks.queue import execution_queue
from harbor_refresh.tasks.strategies import strategy

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
    caller knows Celery. With it, jobs must have ended, too. `at_most` bounds the list, for each of the four. K1
    leaves out executions in quarantine, because they are known to differ: see `set_aside`.

    If work goes on while this looks, then K2 is asked first, the way that a change goes. What has left a place
    after the look at it is seen in the next place. So if K2 finds nothing, nothing moves when K1 is asked.
    """
    not_drained = _not_drained(broker)
    return [
        *wrong(at_most=at_most),
        *_asked("K1", "check_links", at_most=at_most),
        *not_drained,
        *_asked("K3", "check_history", at_most=at_most, kept=HISTORY_KEPT),
        *_asked("K4", "check_reopenings", at_most=at_most),
    ]


def set_aside(*, at_most: int | None = None) -> list[Violation]:
    """The executions in quarantine whose status differs from their tasks."""
    return wrong(quarantined=True, at_most=at_most)


def wrong(*, quarantined: bool = False, at_most: int | None = None) -> list[Violation]:
    """The executions whose status differs from their tasks. An attached Harbor gives some up."""
    given_up = timedelta(hours=DANGLING_HOURS) if is_attached() else None
    return _asked("K1", "check_rollup", quarantined=quarantined, at_most=at_most, given_up=given_up)


def _asked(name: str, statement: str, **values: object) -> list[Violation]:
    return [Violation(name, execution_id, what) for execution_id, what in run(statement, **values)]


def _not_drained(broker: Broker | None) -> list[Violation]:
    """K2: all queues are empty. If nothing is ever queued (an interval ≤ 0), there is nothing to drain.

    A worker takes a message out of its queue a moment before it notes it as unacknowledged. In that moment the
    broker holds nothing, and only the job in the database tells that work is left.

    Queue and processing are read last and in one call, so that a member that moves between them is seen in one.
    """
    if refresh_settings().in_process:
        return []
    messages = broker() if broker else 0
    jobs = Job.objects.filter(task__status_code__lt=FINAL_CODE).count() if broker else 0
    design = strategy()
    elsewhere = design.backlog() if design.runs_cycles else 0
    stats = execution_queue().stats()
    left = {
        "executions wait in the queue": max(elsewhere, stats.backlog),
        "executions are in processing": stats.in_flight,
        "messages are with the broker": messages,
        "jobs have not ended": jobs,
    }
    return [Violation("K2", None, f"{count} {where}") for where, count in left.items() if count]
