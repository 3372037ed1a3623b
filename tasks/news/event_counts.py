"""Event counts: count what the pipeline claims and repairs, from its signals.

These events are changes in Redis, so no transaction holds the event and its count. If the process dies
between the two, that count is lost, and the log may have the line. What changes rows is counted with the rows
(executions/news/counters.py).
"""

from collections.abc import Mapping
from typing import Any

from django.dispatch import Signal

from harbor_refresh.executions.news.counters import add_or_keep
from harbor_refresh.tasks.news import signals

COUNTERS: Mapping[Signal, str] = {
    signals.claimed: "executions_claimed",
    signals.recovered: "executions_recovered",
    signals.marks_lost: "marks_lost",
    signals.reconciled: "drift_marked",
    signals.runs_released: "jobs_recovered",
}


def count_event(signal: Signal, count: int = 0, outcome: Any = None, **_: Any) -> None:
    add_or_keep({(COUNTERS[signal], ""): outcome.marked if outcome else count})


def connect() -> None:
    for signal in COUNTERS:
        signal.connect(count_event, dispatch_uid=__name__)
