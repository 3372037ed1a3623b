"""The progress of an execution, by one indexed query."""

from dataclasses import dataclass
from datetime import timedelta

from executions.database import run
from executions.errors import NoSuchExecution
from executions.status import is_final

#: The speed is that of the last two minutes, or of the last hour if no task has ended in these.
SHORTLY, LONG = timedelta(minutes=2), timedelta(hours=1)


@dataclass(frozen=True)
class Progress:
    """Counts of the tasks by status. `eta` is the time left at the speed of late; None if no task has ended of
    late, or none is left. Time in which nothing was done, before that, does not count."""

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
    rows = run("progress", execution_id=execution_id, shortly=SHORTLY, long=LONG)
    if not rows:
        raise NoSuchExecution(execution_id)
    counts = {status: count for _, _, status, count, _, _ in rows if status is not None}
    total = sum(counts.values())
    done = sum(count for status, count in counts.items() if is_final(status))
    shortly, long = (sum(row[place] or 0 for row in rows) for place in (4, 5))
    span, ended = (SHORTLY, shortly) if shortly else (LONG, long)
    began = timedelta(seconds=max(0.0, rows[0][1]))
    eta = min(span, began) / ended * (total - done) if ended and total > done else None
    return Progress(rows[0][0], counts, total, done, eta)
