"""A reporter in a process of its own: reports tasks as Success through the use case.

python -m benchmarks.reporter

Line by line: reads its job as JSON, sets up, writes `ready`, reads the moment to begin, reports, and
writes what became of it. Moments are those of the monotonic clock, which all processes of a machine
share.
"""

import json
import sys
import time
from dataclasses import asdict, dataclass, field
from signal import SIGKILL
from typing import TYPE_CHECKING, Any

from harbor_refresh.local.process import die_with_parent

if TYPE_CHECKING:
    from executions.usecases import Report


@dataclass(frozen=True)
class Job:
    """`batch` reports a call; `rate` calls a second, or as fast as they go if it is 0; whatever was not
    called after `budget` seconds is left."""

    tasks: list[int]
    budget: float
    batch: int = 1
    rate: float = 0.0
    wake_up: bool = True


@dataclass
class Outcome:
    """When each call was made, in the order of the job, when the last one returned, and what came of them."""

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

    from benchmarks.asleep import fall_asleep
    from executions.queue import execution_queue

    job = Job(**json.loads(sys.stdin.readline()))
    if not job.wake_up:
        fall_asleep()
    connection.ensure_connection()
    execution_queue().stats()
    _say("ready")
    begin = float(sys.stdin.readline())
    _say(json.dumps(asdict(carry_out(job, begin))))


def carry_out(job: Job, begin: float) -> Outcome:
    """Report everything. A call that fails is counted and not repeated."""
    from executions.usecases import Report

    outcome = Outcome()
    starts = range(0, len(job.tasks), job.batch)
    batches = [[Report(pk, "Success", 1) for pk in job.tasks[n : n + job.batch]] for n in starts]
    for number, batch in enumerate(batches):
        due = begin + (number / job.rate if job.rate else 0.0)
        time.sleep(max(0.0, due - time.monotonic()))
        if time.monotonic() > begin + job.budget:
            break
        outcome.calls.append(time.monotonic())
        _send(batch, outcome)
    outcome.ended = time.monotonic()
    return outcome


def _send(batch: "list[Report]", outcome: Outcome) -> None:
    from executions.usecases import report

    try:
        outcome.applied += report(batch).applied
    except Exception as exc:  # whatever it is, it is what the experiment asks for
        outcome.errors += 1
        outcome.first_error = outcome.first_error or f"{type(exc).__name__}: {exc}".strip()


def _say(line: Any) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
