"""The progress of an execution, or of all that is below it, by one indexed query; and as server-sent events.

A stream takes a thread of its web process, so a process serves a few at a time.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.http import StreamingHttpResponse

from harbor_refresh.executions.conf import pacing
from harbor_refresh.executions.database import run
from harbor_refresh.executions.errors import NoSuchExecution, RefreshError, TooManyStreams
from harbor_refresh.executions.status import is_final

#: The speed is that of this time, or of the time since the start.
RECENT = timedelta(hours=1)
SECONDS_BETWEEN = 1.0
#: A stream ends by then, and the caller opens another one, so that no web process waits for it when it restarts.
SECONDS_OF_A_STREAM = 300.0

#: Returns what is told of an execution, with its `status`. Raises RefreshError if it was deleted.
Read = Callable[[], dict[str, Any]]

#: The room for streams in this process.
_room = threading.Semaphore(pacing.STREAMS)


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


def progress(execution_id: int, *, deep: bool = False, now: datetime | None = None) -> Progress:
    """Return the progress of the tasks of an execution; deep, of those of all its descendants as well, without the
    tasks that stand for children. It reads each of them."""
    rows = run("progress", execution_id=execution_id, deep=deep, recent=RECENT, now=now)
    if not rows:
        raise NoSuchExecution(execution_id)
    counts = {row[1]: row[2] for row in rows if row[1] is not None}
    total = sum(counts.values())
    done = sum(count for status, count in counts.items() if is_final(status))
    ends = sum(row[3] or 0 for row in rows)
    status, *_, seconds, is_open = rows[0]
    eta = timedelta(seconds=seconds * (total - done) / ends) if seconds and ends and total > done else None
    return Progress(status, counts, total, done, eta, is_open)


def stream(read: Read) -> StreamingHttpResponse:
    """Answer with `progress` at once and whenever what is read changes, and with `end` when the execution has
    ended. Raises what `read` raises, and TooManyStreams."""
    first = read()
    if not _room.acquire(blocking=False):
        raise TooManyStreams(f"this process serves {pacing.STREAMS} event streams, and no more")
    events = _events(read, first)
    next(events)  # from here on a close makes room, even if no event was read
    return StreamingHttpResponse(events, content_type="text/event-stream", headers={"Cache-Control": "no-store"})


def _events(read: Read, shown: dict[str, Any]) -> Iterator[str]:
    try:
        yield ""
        end = time.monotonic() + SECONDS_OF_A_STREAM
        yield _event(shown)
        while not is_final(shown["status"]) and time.monotonic() < end:
            time.sleep(SECONDS_BETWEEN)
            try:
                now = read()
            except RefreshError:  # it was deleted
                return
            # only a write shows that a client has gone: the first line is lost, the next fails
            yield _event(now) if now != shown else ": still here\n\n"
            shown = now
    finally:
        _room.release()


def _event(shown: dict[str, Any]) -> str:
    name = "end" if is_final(shown["status"]) else "progress"
    return f"event: {name}\ndata: {json.dumps(shown)}\n\n"
