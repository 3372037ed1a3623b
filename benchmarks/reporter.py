"""A reporter in a process of its own: it reports tasks as Success through the use case.

python -m benchmarks.reporter

1. Read the assignment, one line of JSON; set up Django and the connections; write `ready`.
2. Read the moment to begin, report, and write the outcome as one line of JSON.

Moments are those of the monotonic clock, which all processes of a machine share.
"""

import json
import sys
import time
from dataclasses import asdict, dataclass, field
from signal import SIGKILL
from typing import TYPE_CHECKING, Any

from harbor_refresh.local.process import die_with_parent

if TYPE_CHECKING:
    from harbor_refresh.executions.lifecycle.reports import Report


@dataclass(frozen=True)
class Assignment:
    """Report `tasks`, `batch` a call, at `rate` calls a second or as fast as possible if it is 0. No call is begun
    after `budget` seconds."""

    tasks: list[int]
    budget: float
    batch: int = 1
    rate: float = 0.0
    wake_up: bool = True


@dataclass
class Outcome:
    """The moment of each call in order, the moment the last one returned, and the results."""

    calls: list[float] = field(default_factory=list)
    ended: float = 0.0
    applied: int = 0
    errors: int = 0
    first_error: str = ""


def main() -> None:
    die_with_parent(SIGKILL)
    import django

    django.setup()
    from django.db import connection

    from benchmarks.scheduled_app import disconnect_wake_up
    from harbor_refresh.tasks.queue import execution_queue

    assignment = Assignment(**json.loads(sys.stdin.readline()))
    if not assignment.wake_up:
        disconnect_wake_up()
    connection.ensure_connection()
    execution_queue().stats()
    _write("ready")
    begin = float(sys.stdin.readline())
    _write(json.dumps(asdict(report_all(assignment, begin))))


def report_all(assignment: Assignment, begin: float) -> Outcome:
    """Report all tasks. A call that fails is counted and not repeated."""
    from harbor_refresh.executions.lifecycle.reports import Report

    outcome = Outcome()
    starts = range(0, len(assignment.tasks), assignment.batch)
    batches = [[Report(pk, "Success", 1) for pk in assignment.tasks[n : n + assignment.batch]] for n in starts]
    for number, batch in enumerate(batches):
        due = begin + (number / assignment.rate if assignment.rate else 0.0)
        time.sleep(max(0.0, due - time.monotonic()))
        if time.monotonic() > begin + assignment.budget:
            break
        outcome.calls.append(time.monotonic())
        _send(batch, outcome)
    outcome.ended = time.monotonic()
    return outcome


def _send(batch: "list[Report]", outcome: Outcome) -> None:
    from harbor_refresh.executions.lifecycle.reports import report

    try:
        outcome.applied += report(batch).applied
    except Exception as exc:  # every error is a result of the experiment
        outcome.errors += 1
        outcome.first_error = outcome.first_error or f"{type(exc).__name__}: {exc}".strip()


def _write(line: Any) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
