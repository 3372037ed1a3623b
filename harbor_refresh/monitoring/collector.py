"""The collector: make the metrics of this moment from the state of the service and the counters in PostgreSQL.

Nothing is counted in this process. So any web process gives the same answer, after any restart, and a scrape
costs one look (a script in Redis, a statement in PostgreSQL) and one statement that adds up the counters.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from harbor_refresh.executions.database import absence_translated
from harbor_refresh.executions.errors import DatabaseAway
from harbor_refresh.executions.news.counters import Histogram, Totals, totals
from harbor_refresh.monitoring.catalogue import COUNTERS, GAUGES, HISTOGRAMS
from harbor_refresh.monitoring.flights import Flight, Late
from harbor_refresh.tasks.overview.state import State, look

#: The look has time limits of its own for Redis, and for a slow PostgreSQL. This limit is for a stopped
#: PostgreSQL.
SECONDS = 3.0


def _totals() -> Totals | None:
    """Return the counters; None if the database is away, or not migrated."""
    try:
        with absence_translated():
            return totals()
    except DatabaseAway:
        return None


looks = Flight(look)
counts = Flight(_totals)


class Collector:
    """Collect the metrics for one scrape. Unknown values are left out, because a 0 would be wrong; `server_up`
    says which server is away."""

    def collect(self) -> Iterator[Metric]:
        try:
            state = looks.answer(SECONDS)
        except Late:  # Redis and the broker are waited for within the look
            state = State(absent={"database": "it does not answer"})
        for gauge in GAUGES:
            known = gauge.read(state)
            family = GaugeMetricFamily(gauge.name, gauge.meaning, labels=list(gauge.labels))
            for label, value in known.items() if isinstance(known, Mapping) else [("", known)]:
                if value is not None:
                    family.add_metric([label] if gauge.labels else [], value)
            yield family
        with suppress(Late):
            if (found := counts.answer(SECONDS)) is not None:
                yield from _counted(found)


def _counted(found: Totals) -> Iterator[Metric]:
    for counter in COUNTERS:
        total = CounterMetricFamily(counter.name, counter.meaning, labels=list(counter.labels))
        for labels, series in counter.series():
            total.add_metric(labels, found.get((counter.metric, series), 0))
        yield total
    for timed in HISTOGRAMS:
        known = Histogram.of(timed.metric, found)
        bounds = [*(f"{bound:g}" for bound in known.bounds), "+Inf"]
        buckets = list(zip(bounds, accumulate(known.buckets), strict=True))
        yield HistogramMetricFamily(timed.name, timed.meaning, buckets=buckets, sum_value=known.sum)
