"""The progress of an execution, by one indexed query; and that of all that is below it, by another one."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from harbor_refresh.executions.database import run
from harbor_refresh.executions.errors import NoSuchExecution
from harbor_refresh.executions.status import is_final

#: The speed is that of the latest ends, so many at most, within this time.
RECENT, MOST = timedelta(hours=1), 2_000


@dataclass(frozen=True)
class Progress:
    """The progress of an execution.

    Attributes:
        status: The status of the execution.
        counts: The number of its tasks by status.
        total: The number of its tasks.
        done: The number of its tasks that have ended.
        eta: The time left at the rate of the latest ends, without idle time. None if no task has ended within the
            last hour, or no task is left.
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


@dataclass(frozen=True)
class Ends:
    """The latest ends of tasks, in seconds: `middle` is from the start of the execution to their median, `last` to
    the last one, `span` from the first to the last. A stride of `width` ends took `stride`, in the median."""

    count: int
    middle: float | None
    last: float | None
    span: float
    width: int
    stride: float | None

    def seconds_each(self, done: int) -> float | None:
        """Return how long a task takes while others run beside it; None if that is unknown.

        1. The median stride, if there are more ends than jobs that run together.
        2. Before that, if there are no other ends: the jobs that began together took the median of their ends.
        3. If those ends have one moment: the time since the start, shared by all. Here and in 2. it is an hour at
           most, because the jobs may have waited since the start.
        4. If there were ends long ago, so that the start says nothing: the time between the latest ones.
        """
        if self.stride:
            return self.stride / self.width
        if done == self.count and self.middle and self.last:
            is_first_wave = self.stride is None
            took = min(self.middle if is_first_wave else self.last, RECENT.total_seconds())
            return took / (self.width if is_first_wave else self.count)
        return self.span / (self.count - 1) if self.span else None


def progress(execution_id: int, *, now: datetime | None = None) -> Progress:
    rows = run("progress", execution_id=execution_id, long=RECENT, most=MOST, now=now)
    if not rows:
        raise NoSuchExecution(execution_id)
    counts, total, done = _counts(rows)
    each = Ends(*rows[0][3:9]).seconds_each(done)
    eta = timedelta(seconds=each * (total - done)) if each and total > done else None
    return Progress(rows[0][0], counts, total, done, eta, is_open=rows[0][9])


def progress_of_family(execution_id: int) -> Progress:
    """Return the progress of the tasks of an execution and all its descendants, without the tasks that stand for
    children. It reads each of them. Their ends tell no time left."""
    rows = run("progress_of_family", execution_id=execution_id)
    if not rows:
        raise NoSuchExecution(execution_id)
    return Progress(rows[0][0], *_counts(rows), eta=None, is_open=rows[0][3])


def _counts(rows: list[Any]) -> tuple[dict[str, int], int, int]:
    """Return how many tasks have each status, how many there are, and how many have ended."""
    counts: dict[str, int] = {}
    for _, status, count, *_ in rows:
        if status is not None:
            counts[status] = counts.get(status, 0) + count
    done = sum(count for status, count in counts.items() if is_final(status))
    return counts, sum(counts.values()), done
