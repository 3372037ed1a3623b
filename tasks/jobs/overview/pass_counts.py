"""Counts of passes: the results of each pass over the jobs are added up, for operators.

The counts are in Redis. If Redis is away, a count is lost and the pass goes on; the log has it.
"""

from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from harbor_refresh.executions.errors import QueueUnavailable
from harbor_refresh.tasks import signals
from harbor_refresh.tasks.jobs.records.counts import Count, counts
from harbor_refresh.tasks.jobs.repair.tally import Tally
from harbor_refresh.tasks.queue.clock import at

#: The meaning of each count, by the kind of pass: the fields of Reaped and of Recovered.
MEANINGS = {
    "reaper": {
        "reported": "ahead of the last delivered report, or there was none: reported again",
        "forgotten": "ended and delivered: no longer in progress",
        "failed": "silent for too long: Error",
        "taken": "behind the last delivered report: brought to it",
        "lost": "had begun, and Redis knew nothing of it: looked for",
        "unsent": "its message was lost with Redis: to be sent again",
        "unreadable": "records nobody could read: dropped",
        "troubled": "pages the database refused: left to the next pass",
    },
    "recovery": {
        "given_back": "its node had died: waits again, in a new revision",
        "landed": "its report was late: made again",
        "sent": "had no message, or none that came: sent",
        "unreadable": "records nobody could read: dropped",
        "troubled": "pages the database refused: left to the next pass",
    },
}


@dataclass(frozen=True)
class Passes:
    """The counts of all passes of one kind, in the order of MEANINGS."""

    passes: int
    last: datetime | None
    done: dict[str, int]


@dataclass(frozen=True)
class Counted:
    since: datetime | None
    reaper: Passes
    recovery: Passes


def counted() -> Counted:
    """Return the counts, and since when passes are counted. Raises QueueUnavailable."""
    since, found = counts().all()
    kinds = {kind: _passes(kind, found.get(kind, Count())) for kind in MEANINGS}
    return Counted(at(since) if since else None, **kinds)


def _passes(kind: str, count: Count) -> Passes:
    done = {what: count.done.get(what, 0) for what in MEANINGS[kind]}
    return Passes(count.passes, at(count.last) if count.last else None, done)


def on_reaped(outcome: Tally, **_: Any) -> None:
    _add("reaper", outcome)


def on_jobs_recovered(outcome: Tally, **_: Any) -> None:
    _add("recovery", outcome)


def _add(kind: str, outcome: Tally) -> None:
    with suppress(QueueUnavailable):
        counts().add(kind, asdict(outcome))


def begin() -> None:
    signals.reaped.connect(on_reaped, dispatch_uid="counting.reaped")
    signals.jobs_recovered.connect(on_jobs_recovered, dispatch_uid="counting.jobs_recovered")
