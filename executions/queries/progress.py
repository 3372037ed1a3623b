"""The progress of an execution, or of all that is below it, by one indexed query."""

from dataclasses import dataclass
from datetime import timedelta

from harbor_refresh.executions.database import run
from harbor_refresh.executions.errors import NoSuchExecution
from harbor_refresh.executions.status import is_final

#: The speed is that of this time, or of the time since the start.
RECENT = timedelta(hours=1)


@dataclass(frozen=True)
class Progress:
    """The progress of an execution.

    Attributes:
        status: The status of the execution.
        counts: The number of its tasks by status.
        total: The number of its tasks.
        done: The number of its tasks that have ended.
        eta: The time left at the average rate since the start, or of the last hour. Time without workers counts.
            None if no task has ended in this time, or no task is left.
        is_open: Whether more tasks may be added. If so, the other values count the tasks added so far.
    """

    status: str
    counts: dict[str, int]
    total: int
    done: int
    eta: timedelta | None
    is_open: bool = False

    @property
    def share(self) -> float:
        """The share of ended tasks, 0 to 1. Without tasks, it is 1 if the execution has ended, else 0."""
        return self.done / self.total if self.total else float(is_final(self.status))


def progress(execution_id: int, *, deep: bool = False) -> Progress:
    """Return the progress of the tasks of an execution; deep, of those of all its descendants as well, without the
    tasks that stand for children. It reads each of them."""
    rows = run("progress", execution_id=execution_id, deep=deep, recent=RECENT)
    if not rows:
        raise NoSuchExecution(execution_id)
    counts = {row[1]: row[2] for row in rows if row[1] is not None}
    total = sum(counts.values())
    done = sum(count for status, count in counts.items() if is_final(status))
    ends = sum(row[3] or 0 for row in rows)
    status, *_, seconds, is_open = rows[0]
    eta = timedelta(seconds=seconds * (total - done) / ends) if seconds and ends and total > done else None
    return Progress(status, counts, total, done, eta, is_open)
