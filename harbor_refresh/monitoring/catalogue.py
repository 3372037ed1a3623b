"""The catalogue of metrics: each name, its labels and its meaning, once. docs/reference/metrics.md is made
from it.

Counters and histograms are rows in PostgreSQL (executions/news/counters.py), so they do not begin again when a
process does. Every possible series is there from the beginning, with 0: else `increase()` would miss the first
event.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

from harbor_refresh.executions.api.problems import COUNTED
from harbor_refresh.executions.lifecycle.reports import Source
from harbor_refresh.executions.news.counters import REFRESH_SECONDS, REPORT_TO_TRUE_SECONDS
from harbor_refresh.executions.status import CODES
from harbor_refresh.tasks.overview.state import State

PREFIX = "harbor_refresh_"

#: The values of a gauge by its labels; None: unknown.
Values = Sequence[tuple[tuple[str, ...], float | None]]


@dataclass(frozen=True)
class Counted:
    """A counter. `labels` holds each label with the values that it may have."""

    metric: str
    meaning: str
    labels: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def name(self) -> str:
        return f"{PREFIX}{self.metric}_total"

    @property
    def label_names(self) -> list[str]:
        return [label for label, _ in self.labels]

    def series(self) -> list[tuple[tuple[str, ...], str]]:
        """Return every series: the values of its labels, and the text under which it is counted."""
        combined = product(*(values for _, values in self.labels))
        return [
            (values, ",".join(map("=".join, zip(self.label_names, values, strict=True)))) for values in combined
        ]


@dataclass(frozen=True)
class Timed:
    """A histogram, in seconds."""

    metric: str
    meaning: str

    @property
    def name(self) -> str:
        return PREFIX + self.metric


@dataclass(frozen=True)
class Gauge:
    """A value of the present. `read` takes it from the state."""

    metric: str
    meaning: str
    read: Callable[[State], Values]
    label_names: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return PREFIX + self.metric


SOURCES = ("source", tuple(map(str, Source)))

COUNTERS = (
    Counted("refreshes", "executions refreshed", (("result", ("changed", "unchanged", "failed")),)),
    Counted("executions_claimed", "executions that ticks have claimed and sent to workers"),
    Counted("executions_recovered", "executions whose claim was recovered from a dead or slow worker"),
    Counted("drift_marked", "executions with drift that reconcile has found and marked"),
    Counted("marks_lost", "executions that could not be marked, because Redis was away; reconcile finds them"),
    Counted("quarantines", "executions that were quarantined after too many failures"),
    Counted("reports", "status changes of tasks", (("result", ("applied", "unchanged", "refused")), SOURCES)),
    Counted(
        "requests_refused",
        "requests of the API and the hook that were refused, by the status of the answer",
        (("source", ("api", "hook", "metrics")), ("status", tuple(map(str, COUNTED)))),
    ),
    Counted(
        "job_reports", "reports of jobs that changed a task, by the task's new status", (("status", tuple(CODES)),)
    ),
    Counted("jobs_recovered", "runs of jobs whose process died; their jobs wait to run again, or have failed"),
    Counted("deliveries", "attempts to deliver notifications", (("result", ("delivered", "retried", "dead")),)),
)

HISTOGRAMS = (
    Timed(REFRESH_SECONDS, "the time in the database that a refresh of one batch of executions took"),
    Timed(
        REPORT_TO_TRUE_SECONDS,
        "the time from the end of an execution's last task to its final status",
    ),
)


def one(value: float | None) -> Values:
    return [((), value)]


def _messages(state: State) -> Values:
    return [((queue,), count) for queue, count in (state.messages or {}).items()]


def _nodes(state: State) -> Values:
    return [
        (("alive",), None if state.nodes is None else len(state.nodes)),
        (("dead",), None if state.dead is None else len(state.dead)),
    ]


def _heartbeats(state: State) -> Values:
    return [((node.name,), node.silent) for node in state.nodes or ()]


def _ticks(state: State) -> Values:
    return [((row.task,), row.sent) for row in state.schedule or ()]


def _servers(state: State) -> Values:
    return [((server,), float(server not in state.absent)) for server in ("redis", "broker", "database")]


GAUGES = (
    Gauge("backlog", "executions that wait for a refresh", lambda state: one(state.backlog)),
    Gauge("in_flight", "executions that are claimed and not refreshed yet", lambda state: one(state.in_flight)),
    Gauge(
        "oldest_waiting_seconds",
        "the minimum waiting time of the oldest execution on the queue",
        lambda state: one(state.oldest_waiting),
    ),
    Gauge(
        "failed_before",
        "waiting or claimed executions whose refresh failed before",
        lambda state: one(state.failed_before),
    ),
    Gauge("quarantined", "executions in quarantine, counted up to 10,000", lambda state: one(state.quarantined)),
    Gauge("nodes", "worker processes, alive or dead by their heartbeats", _nodes, ("state",)),
    Gauge(
        "node_heartbeat_age_seconds",
        "the time since the last heartbeat of a live worker process",
        _heartbeats,
        ("node",),
    ),
    Gauge(
        "last_tick_age_seconds", "the time since a worker last looked for work", lambda state: one(state.last_tick)
    ),
    Gauge(
        "last_reconcile_age_seconds",
        "the time since the last complete pass of reconcile began",
        lambda state: one(state.last_reconcile),
    ),
    Gauge("schedule_age_seconds", "the time since beat last sent this task of its schedule", _ticks, ("task",)),
    Gauge("beat_age_seconds", "the time since beat last sent anything", lambda state: one(state.beat_silent)),
    Gauge(
        "paused",
        "the number of queues that an operator has paused, including refreshing",
        lambda state: one(_paused(state)),
    ),
    Gauge("messages", "messages that wait in the broker", _messages, ("queue",)),
    Gauge(
        "jobs_in_progress",
        "running jobs, counted up to 10,000",
        lambda state: one(state.jobs_in_progress),
    ),
    Gauge(
        "dead_letters",
        "deliveries that were given up, counted up to 10,000",
        lambda state: one(state.dead_letters),
    ),
    Gauge("open_actions", "actions on many executions that have not ended", lambda state: one(state.open_actions)),
    Gauge("server_up", "1 if the server answered in time, else 0", _servers, ("server",)),
)


def _paused(state: State) -> float | None:
    return None if state.paused is None else len(state.paused)


METRICS = (*COUNTERS, *HISTOGRAMS, *GAUGES)
