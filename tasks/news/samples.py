"""Samples: what the charts of the dashboard show of two days, one row every ten seconds. Prometheus has all other
figures over time.

`tasks.sample` adds them; while no worker is alive, a web process with an open dashboard does. If two add one at
once, then the second changes nothing. After a gap, the next sample counts what happened in between.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from harbor_refresh.executions.news import counters
from harbor_refresh.executions.news.counters import REPORT_TO_TRUE_SECONDS, Histogram
from harbor_refresh.tasks.news.state import ServiceState
from harbor_refresh.tasks.pipeline.schedule import interval_of
from harbor_refresh.tasks.sql import run

#: How far each chart goes back, and the width of its points.
SPANS = {
    "minutes": (timedelta(minutes=2), timedelta(seconds=10)),
    "hour": (timedelta(hours=1), timedelta(seconds=30)),
    "day": (timedelta(days=1), timedelta(minutes=10)),
}


@dataclass(frozen=True)
class Point:
    """What happened in one slot. None: unknown, because no sample was taken.

    `refreshes`: how many a second. `typical` and `slow`: the seconds after a report within which half, and 95 of
    100, of the statuses became true.
    """

    begins: datetime
    backlog: int | None = None
    refreshes: float | None = None
    failed: int | None = None
    recovered: int | None = None
    typical: float | None = None
    slow: float | None = None


class _Row(NamedTuple):
    """A row of read_samples.sql with a sample; `latency` is JSON."""

    begins: datetime
    at: datetime
    backlog: int | None
    refreshed: int
    failed: int
    recovered: int
    latency: str


def record(state: ServiceState) -> None:
    """Add a sample of this state, unless there is one of the last five seconds."""
    totals, labels = counters.totals(), counters.labels_of(REPORT_TO_TRUE_SECONDS)
    run(
        "add_sample",
        backlog=state.backlog,
        refreshed=sum(totals.get(("refreshes", f"result={one}"), 0) for one in ("changed", "unchanged")),
        failed=totals.get(("refreshes", "result=failed"), 0),
        recovered=totals.get(("executions_recovered", ""), 0),
        latency=json.dumps([totals.get((REPORT_TO_TRUE_SECONDS, one), 0) for one in labels]),
    )


def read(name: str) -> list[Point]:
    """Return a point for every slot of that span (a name of SPANS), the earliest first; a slot without a sample
    has an empty point."""
    span, slot = SPANS[name]
    # with a longer interval between samples, every second point would be a gap
    slot = max(slot, timedelta(seconds=1.5 * interval_of("tasks.sample")))
    return list(_points(run("read_samples", span=span, slot=slot)))


def _points(rows: Sequence[tuple[Any, ...]]) -> Iterator[Point]:
    before: _Row | None = None
    for number, (begins, last_at, *values) in enumerate(rows):
        row = _Row(begins, last_at, *values) if last_at else None
        if number:  # the first slot lies before the span
            yield _between(before, row) if before and row else Point(begins)
        before = row or before


def _between(before: _Row, row: _Row) -> Point:
    """Return what happened between two rows. A counter that went back comes from a database that was restored, so
    nothing is known of that time."""
    seconds = (row.at - before.at).total_seconds()
    earlier, later = _histogram(before.latency), _histogram(row.latency)
    new = later.since(earlier)
    changes = (row.refreshed - before.refreshed, row.failed - before.failed, row.recovered - before.recovered)
    if seconds <= 0 or min(*changes, *new.buckets) < 0:
        return Point(row.begins, row.backlog)
    of_counters = (changes[0] / seconds, changes[1], changes[2])
    return Point(row.begins, row.backlog, *of_counters, new.quantile(0.5), new.quantile(0.95))


def _histogram(latency: str) -> Histogram:
    """A program of another version may have had other buckets: then nothing is known of them."""
    bounds, buckets = counters.BOUNDS[REPORT_TO_TRUE_SECONDS], tuple(json.loads(latency))
    known = buckets if len(buckets) == len(bounds) + 1 else (0,) * (len(bounds) + 1)
    return Histogram(bounds, known, 0.0)
