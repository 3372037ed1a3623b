"""The progress of an execution, by one indexed query."""

from dataclasses import dataclass
from datetime import timedelta

from executions.database import run
from executions.errors import NoSuchExecution
from executions.status import is_final


@dataclass(frozen=True)
class Progress:
    """Counts of the tasks by status. `eta` is the time left at the speed so far; None if no task has ended."""

    status: str
    counts: dict[str, int]
    total: int
    done: int
    eta: timedelta | None

    @property
    def share(self) -> float:
        """Return the share of ended tasks, 0 to 1. Without tasks, it is 1 if the execution has ended, else 0."""
        return self.done / self.total if self.total else float(is_final(self.status))


def progress(execution_id: int) -> Progress:
    rows = run("progress", execution_id=execution_id)
    if not rows:
        raise NoSuchExecution(execution_id)
    counts = {status: count for _, _, status, count in rows if status is not None}
    total = sum(counts.values())
    done = sum(count for status, count in counts.items() if is_final(status))
    own, seconds = rows[0][0], rows[0][1]
    eta = timedelta(seconds=seconds / done * (total - done)) if done else None
    return Progress(own, counts, total, done, eta)
