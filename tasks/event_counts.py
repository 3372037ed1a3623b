"""Event counts: count what the pipeline claims and repairs, from its signals.

These events are changes in Redis, so no transaction holds the event and its count. What if the process dies
between the two: that count is lost, and the log may have the line. What changes rows is counted with the rows
(executions/news/counters.py).
"""

from typing import TYPE_CHECKING, Any

from harbor_refresh.executions.news.counters import add_later, add_or_keep
from harbor_refresh.tasks import signals

if TYPE_CHECKING:
    from harbor_refresh.tasks.jobs.repair.job_recovery import Recovered
    from harbor_refresh.tasks.pipeline.reconciliation import Reconciled


def on_claimed(count: int, **_: Any) -> None:
    add_or_keep({("executions_claimed", ""): count})


def on_recovered(count: int, **_: Any) -> None:
    add_or_keep({("executions_recovered", ""): count})


def on_marks_lost(count: int, **_: Any) -> None:
    add_or_keep({("marks_lost", ""): count})


def on_reconciled(outcome: "Reconciled", **_: Any) -> None:
    add_or_keep({("drift_marked", ""): outcome.marked})


def on_message_refused(job: str, **_: Any) -> None:
    add_later({("job_messages_refused", ""): 1})  # the main process of a worker must not wait for the database


def on_jobs_recovered(outcome: "Recovered", **_: Any) -> None:
    add_or_keep({("jobs_recovered", ""): outcome.given_back})


def connect() -> None:
    for name, count in list(globals().items()):
        if name.startswith("on_"):
            getattr(signals, name.removeprefix("on_")).connect(count, dispatch_uid=f"{__name__}.{name}")
