"""Counters and histograms in PostgreSQL, for `/metrics` and the dashboard.

A count commits in the transaction of the change that it counts, so it is exact after `kill -9`. It never waits for
another transaction (sql/schema/counting_function.sql). A series is a metric with its labels as text: ("refreshes",
"result=changed"). A histogram is one series for each of its buckets, and one for its sum.
"""

import collections
import os
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate

from django.db import transaction
from django.db.models import Sum

from harbor_refresh.executions.database import absence_translated, run
from harbor_refresh.executions.errors import DatabaseDown
from harbor_refresh.executions.models import Counter

Series = tuple[str, str]
#: The totals of every series, by metric and labels.
Totals = Mapping[Series, int]

REFRESH_SECONDS = "refresh_seconds"
REPORT_TO_TRUE_SECONDS = "report_to_true_seconds"
#: The upper bounds of the buckets of each histogram, in seconds; the last bucket has none.
BOUNDS: Mapping[str, tuple[float, ...]] = {
    REFRESH_SECONDS: (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
    REPORT_TO_TRUE_SECONDS: (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900, 3600),
}
SUM = "sum"
MICROSECONDS = 1_000_000


def add(amounts: Mapping[Series, int]) -> None:
    """Add to these counters, in the transaction of the caller; without one, at once. Two at once add to
    different shards."""
    wanted = {key: amount for key, amount in amounts.items() if amount}
    if wanted:
        run(
            "add_to_counters",
            metrics=[metric for metric, _ in wanted],
            series=[series for _, series in wanted],
            amounts=list(wanted.values()),
        )


def labels_of(metric: str) -> list[str]:
    """Return the label of each bucket of a histogram."""
    return [*(f"le={bound:g}" for bound in BOUNDS[metric]), "le=+Inf"]


def totals() -> dict[Series, int]:
    """Return every counter, the sum of its shards. The table has a few thousand rows."""
    sums = Counter.objects.values_list("metric", "series").annotate(Sum("amount"))
    return {(metric, series): int(amount) for metric, series, amount in sums.order_by("metric", "series")}


@dataclass(frozen=True)
class Histogram:
    """`buckets`: how many observations fell into each bucket, not added up."""

    bounds: tuple[float, ...]
    buckets: tuple[int, ...]
    sum: float

    @classmethod
    def of(cls, metric: str, totals: Totals) -> "Histogram":
        buckets = tuple(totals.get((metric, label), 0) for label in labels_of(metric))
        return cls(BOUNDS[metric], buckets, totals.get((metric, SUM), 0) / MICROSECONDS)

    @property
    def count(self) -> int:
        return sum(self.buckets)

    def since(self, earlier: "Histogram") -> "Histogram":
        """Return what was observed after `earlier`."""
        pairs = zip(self.buckets, earlier.buckets, strict=True)
        return Histogram(self.bounds, tuple(now - then for now, then in pairs), self.sum - earlier.sum)

    def quantile(self, share: float) -> float | None:
        """Estimate the value that this share of the observations does not exceed, as Prometheus does: evenly
        spread inside a bucket. None if there is no observation; of the last bucket, its lower bound."""
        if not self.count:
            return None
        wanted = share * self.count
        for place, reached in enumerate(accumulate(self.buckets)):
            if reached >= wanted and self.buckets[place]:
                break
        if place == len(self.bounds):
            return self.bounds[-1]
        lower = self.bounds[place - 1] if place else 0.0
        part = 1 - (reached - wanted) / self.buckets[place]
        return lower + (self.bounds[place] - lower) * part


class Kept:
    """The counts of this process that are not in the database yet."""

    SECONDS = 1.0

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Begin with no counts, also in a child process: the parent writes its own."""
        self._lock = threading.Lock()
        self._amounts: collections.Counter[Series] = collections.Counter()
        self._due_at = 0.0

    def add_later(self, amounts: Mapping[Series, int]) -> None:
        """Add at most once a second, for events that change no row and may come as a flood, such as refused
        requests: after the commit, and with what earlier events have kept. If the process ends, the counts that it
        keeps are lost."""
        with self._lock:
            self._amounts.update(amounts)
            if time.monotonic() < self._due_at:
                return
            self._due_at = time.monotonic() + self.SECONDS
        with suppress(DatabaseDown), absence_translated():
            transaction.on_commit(self.write, robust=True)

    def write(self) -> None:
        """Add the counts that are kept. If the database is down, they are lost."""
        with self._lock:
            amounts, self._amounts = self._amounts, collections.Counter()
        with suppress(DatabaseDown), absence_translated():
            add(amounts)


kept = Kept()
add_later = kept.add_later
os.register_at_fork(after_in_child=kept.begin)
