"""The catalogue of metrics: each name, its labels and its meaning, once. docs/reference/metrics.md is made
from it.

Counters and histograms are rows in PostgreSQL (executions/news/counters.py), so they do not begin again when a
process does. Every possible series is there from the beginning, with 0: else `increase()` would miss the first
event.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from harbor_refresh.executions.api.problems import COUNTED
from harbor_refresh.executions.lifecycle.reports import Source
from harbor_refresh.executions.news.counters import REFRESH_SECONDS, REPORT_TO_TRUE_SECONDS
from harbor_refresh.executions.status import CODES
from harbor_refresh.tasks.news.state import ServiceState

PREFIX = "harbor_refresh_"

#: The value of a gauge, or its values by its label; None: unknown.
Known = float | None | Mapping[str, float | None]


@dataclass(frozen=True)
class Metric:
    """`labels` holds each label with the values that it may have, of a gauge without them."""

    metric: str
    meaning: str
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return PREFIX + self.metric


class Timed(Metric):
    """A histogram, in seconds."""


class Counted(Metric):
    """A counter."""

    @property
    def name(self) -> str:
        return f"{PREFIX}{self.metric}_total"

    def series(self) -> list[tuple[tuple[str, ...], str]]:
        """Return every series: the values of its labels, and the text under which it is counted."""
        combined = product(*self.labels.values())
        return [(values, ",".join(map("=".join, zip(self.labels, values, strict=True)))) for values in combined]


@dataclass(frozen=True)
class Gauge(Metric):
    """A value of the present. `read` takes it from the state; otherwise it has the metric's name there, without
    the unit of an age."""

    read: Callable[[ServiceState], Known] | None = field(default=None, kw_only=True)

    def value(self, state: ServiceState) -> Known:
        name = self.metric.removesuffix("_seconds").removesuffix("_age")
        found: Known = self.read(state) if self.read else getattr(state, name)
        return found


COUNTERS = (
    Counted("refreshes", "executions refreshed", {"result": ("changed", "unchanged", "failed")}),
    Counted("executions_claimed", "executions that ticks have claimed and sent to workers"),
    Counted("executions_recovered", "executions whose claim was recovered from a dead or slow worker"),
    Counted("drift_marked", "executions with drift that reconcile has found and marked"),
    Counted("marks_lost", "executions that could not be marked, because Redis was down; reconcile finds them"),
    Counted("quarantines", "executions that were quarantined after too many failures"),
    Counted(
        "reports",
        "status changes of tasks",
        {"result": ("applied", "unchanged", "refused"), "source": tuple(Source)},
    ),
    Counted(
        "requests_refused",
        "requests of the API and the hook that were refused, by the status of the answer",
        {"source": ("api", "hook", "metrics"), "status": tuple(map(str, COUNTED))},
    ),
    Counted(
        "job_reports", "reports of jobs that changed a task, by the task's new status", {"status": tuple(CODES)}
    ),
    Counted("jobs_recovered", "runs of jobs whose process died; their jobs wait to run again, or have failed"),
    Counted("deliveries", "attempts to deliver notifications", {"result": ("delivered", "retried", "dead")}),
)

HISTOGRAMS = (
    Timed(REFRESH_SECONDS, "the time in the database that a refresh of one batch of executions took"),
    Timed(REPORT_TO_TRUE_SECONDS, "the time from the end of an execution's last task to its final status"),
)


def _number(items: Sequence[object] | None) -> float | None:
    return None if items is None else len(items)


GAUGES = (
    Gauge("backlog", "executions that wait for a refresh"),
    Gauge("in_flight", "executions that are claimed and not refreshed yet"),
    Gauge("oldest_waiting_seconds", "the minimum waiting time of the oldest execution on the queue"),
    Gauge("failed_before", "waiting or claimed executions whose refresh failed before"),
    Gauge("quarantined", "executions in quarantine, counted up to 10,000"),
    Gauge(
        "nodes",
        "worker processes, alive or dead by their heartbeats",
        {"state": ()},
        read=lambda state: {"alive": _number(state.nodes), "dead": _number(state.dead)},
    ),
    Gauge(
        "node_heartbeat_age_seconds",
        "the time since the last heartbeat of a live worker process",
        {"node": ()},
        read=lambda state: {node.name: node.silent for node in state.nodes or ()},
    ),
    Gauge("last_tick_age_seconds", "the time since a worker last looked for work"),
    Gauge("last_reconcile_age_seconds", "the time since the last complete pass of reconcile began"),
    Gauge(
        "schedule_age_seconds",
        "the time since beat last sent this task of its schedule",
        {"task": ()},
        read=lambda state: {row.task: row.sent for row in state.schedule or ()},
    ),
    Gauge("beat_age_seconds", "the time since beat last sent anything", read=lambda state: state.beat_silent),
    Gauge(
        "paused",
        "the number of queues that an operator has paused, including refreshing",
        read=lambda state: _number(state.paused),
    ),
    Gauge("messages", "messages that wait in the broker", {"queue": ()}),
    Gauge("jobs_in_progress", "running jobs, counted up to 10,000"),
    Gauge("dead_letters", "deliveries that were given up, counted up to 10,000"),
    Gauge("open_actions", "actions on many executions that have not ended"),
    Gauge(
        "server_up",
        "1 if the server answered in time, else 0",
        {"server": ()},
        read=lambda state: {
            server: float(server not in state.absent) for server in ("redis", "broker", "database")
        },
    ),
)

METRICS = (*COUNTERS, *HISTOGRAMS, *GAUGES)
