"""The collector: make the metrics of this moment from the state of the service and the counters in PostgreSQL.

Nothing is counted in this process. So any web process gives the same answer, after any restart, and a scrape
costs one look (a script in Redis, a statement in PostgreSQL) and one statement that adds up the counters.
"""

from collections.abc import Iterator
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from harbor_refresh.executions.database import absence_translated
from harbor_refresh.executions.errors import DatabaseAway
from harbor_refresh.executions.news.counters import Histogram, Totals, totals
from harbor_refresh.monitoring.catalogue import COUNTERS, GAUGES, HISTOGRAMS, Counted, Gauge, Timed
from harbor_refresh.monitoring.flights import Flight, Late
from harbor_refresh.tasks.overview.state import State, look

#: The look has time limits of its own for Redis, and for a slow PostgreSQL. This limit is for a stopped
#: PostgreSQL.
SECONDS = 3.0
HANGS = "it does not answer"


def _counted() -> Totals | None:
    """Return the counters; None if the database is away, or not migrated."""
    try:
        with absence_translated():
            return totals()
    except DatabaseAway:
        return None


looks = Flight(look)
counts = Flight(_counted)


class Collector:
    """Collect the metrics for one scrape. Unknown values are left out, because a 0 would be wrong; `server_up`
    says which server is away."""

    def collect(self) -> Iterator[Metric]:
        state = self._state()
        for gauge in GAUGES:
            yield _gauge(gauge, state)
        if (found := self._totals()) is not None:
            for counter in COUNTERS:
                yield _counter(counter, found)
            for histogram in HISTOGRAMS:
                yield _histogram(histogram, found)

    def _state(self) -> State:
        """Redis and the broker are waited for within the look, so a look that is late waits for PostgreSQL."""
        try:
            return looks.answer(SECONDS)
        except Late:
            return State(absent={"database": HANGS})

    def _totals(self) -> Totals | None:
        try:
            return counts.answer(SECONDS)
        except Late:
            return None


def _gauge(gauge: Gauge, state: State) -> Metric:
    family = GaugeMetricFamily(gauge.name, gauge.meaning, labels=gauge.label_names)
    for labels, value in gauge.read(state):
        if value is not None:
            family.add_metric(labels, value)
    return family


def _counter(counter: Counted, found: Totals) -> Metric:
    family = CounterMetricFamily(counter.name, counter.meaning, labels=counter.label_names)
    for labels, series in counter.series():
        family.add_metric(labels, found.get((counter.metric, series), 0))
    return family


def _histogram(histogram: Timed, found: Totals) -> Metric:
    family = HistogramMetricFamily(histogram.name, histogram.meaning)
    known = Histogram.of(histogram.metric, found)
    bounds = [*(f"{bound:g}" for bound in known.bounds), "+Inf"]
    family.add_metric([], list(zip(bounds, accumulate(known.buckets), strict=True)), known.sum)
    return family
