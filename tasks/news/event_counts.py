"""Event counts: count what the pipeline claims and repairs, from its signals.

These events are changes in Redis, so no transaction holds the event and its count. If the process dies
between the two, that count is lost, and the log may have the line. What changes rows is counted with the rows
(executions/news/counters.py).
"""

from typing import Any

from harbor_refresh.executions.news.counters import add_or_keep
from harbor_refresh.executions.news.execution_log import connect_each
from harbor_refresh.tasks.news import signals


def on_claimed(count: int, **_: Any) -> None:
    add_or_keep({("executions_claimed", ""): count})


def on_recovered(count: int, **_: Any) -> None:
    add_or_keep({("executions_recovered", ""): count})


def on_marks_lost(count: int, **_: Any) -> None:
    add_or_keep({("marks_lost", ""): count})


def on_reconciled(outcome: Any, **_: Any) -> None:
    add_or_keep({("drift_marked", ""): outcome.marked})


def on_runs_released(count: int, **_: Any) -> None:
    add_or_keep({("jobs_recovered", ""): count})


def connect() -> None:
    connect_each(globals().items(), vars(signals), __name__)
