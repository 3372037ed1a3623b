"""Cards: the numbers of the overview, each with what it means."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from django.urls import reverse

from harbor_refresh.dashboard.latest import Overview
from harbor_refresh.executions.durations import age, ago
from harbor_refresh.executions.text import plural
from harbor_refresh.tasks.overview.state import MOST, State

UNKNOWN = "?"


@dataclass(frozen=True)
class Card:
    """`level` is `wrong` if a check about this number (ABOUT) finds an error. `value` is text for people."""

    id: str
    title: str
    value: str
    note: str
    level: str = ""
    href: str = ""

    def as_json(self) -> dict[str, str]:
        return asdict(self)


#: The checks that are about a card.
ABOUT = {
    "backlog": {"redis.reachable"},
    "oldest": {"status.waiting"},
    "workers": {"workers.alive"},
    "quarantined": {"status.quarantine"},
    "dead_letters": {"status.deliveries"},
    "ticks": {"workers.ticks", "beat.alive", "beat.rows"},
    "reconcile": {"status.reconcile"},
}


def cards(overview: Overview) -> list[Card]:
    wrong = {finding.id for finding in overview.findings if finding.is_serious()}
    return [
        Card(one.id, one.title, one.value, one.note, "wrong" if wrong & ABOUT.get(one.id, set()) else "", one.href)
        for one in _cards(overview)
    ]


def _cards(overview: Overview) -> Iterator[Card]:
    state = overview.state
    executions = reverse("admin:harbor_executions_execution_changelist")
    quarantine = reverse("admin:harbor_executions_quarantine_changelist")
    deliveries = reverse("admin:harbor_executions_delivery_changelist")
    yield Card("backlog", "Waiting", _count(state.backlog), "executions that wait for a refresh", href=executions)
    yield Card("in_flight", "In flight", _count(state.in_flight), "claimed by a worker, and not refreshed yet")
    yield Card("oldest", "Oldest waiting", _waited(state.oldest_waiting), _waiting_note(state))
    yield _throughput(overview)
    yield _lateness(overview)
    yield _workers(state)
    yield Card("ticks", "Last tick", ago(state.last_tick), f"beat sent something {ago(state.beat_silent)}")
    yield Card("reconcile", "Last reconcile", ago(state.last_reconcile), _drift_note(state))
    yield _jobs(state)
    if overview.limits:
        yield _limits(overview.limits)
    yield Card(
        "quarantined",
        "Quarantined",
        _limited(state.quarantined),
        "executions that failed too often",
        href=quarantine,
    )
    yield _failures(overview)
    yield Card(
        "dead_letters",
        "Dead letters",
        _limited(state.dead_letters),
        "notifications that were given up",
        href=f"{deliveries}?state__exact=dead",
    )


def _throughput(overview: Overview) -> Card:
    rates = [point.refreshes for point in overview.points if point.refreshes is not None]
    value = f"{fmean(rates[-6:]):,.1f}/s" if rates else UNKNOWN
    return Card("refreshes", "Refreshed", value, "executions a second, in the last minute")


def _lateness(overview: Overview) -> Card:
    slow = [point.slow for point in overview.points if point.slow is not None]
    value = age(max(slow[-6:])) if slow else "-"
    return Card(
        "lateness", "Report to status", value, "within this time, 95 of 100 statuses followed their report"
    )


def _workers(state: State) -> Card:
    if state.nodes is None:
        return Card("workers", "Worker processes", UNKNOWN, "Redis is away")
    dead = len(state.dead or ())
    note = f"{dead} died within the last hour" if dead else "alive, none died within the last hour"
    return Card("workers", "Worker processes", f"{len(state.nodes):,}", note)


def _jobs(state: State) -> Card:
    note = "the broker is away"
    if state.messages is not None:
        waiting = plural(sum(state.messages.values()), "message waits", "messages wait")
        note = f"run now; {waiting} with the broker"
    return Card("jobs", "Jobs", _count(state.jobs_in_progress), note)


def _limits(limits: Sequence[Mapping[str, Any]]) -> Card:
    """The limit for which the most jobs wait stands in the note."""
    waiting = sum(one["waiting"] for one in limits)
    first = max(limits, key=lambda one: (one["waiting"], one["admitted"]))
    note = f"{first['name']}: {first['admitted']:,} have a place, {first['waiting']:,} wait"
    queue = reverse("admin:harbor_tasks_pause_changelist")
    return Card("limits", "Waiting for a limit", _limited(waiting), note, href=queue)


def _failures(overview: Overview) -> Card:
    failed = [point.failed for point in overview.points if point.failed is not None]
    value = f"{sum(failed):,}" if failed else UNKNOWN
    before = f"{_count(overview.state.failed_before)} that wait have failed before"
    return Card("failures", "Failed refreshes", value, f"in the last two minutes; {before}")


def _waiting_note(state: State) -> str:
    if state.pause:
        return "no worker claims: the database was away"
    return "paused by an operator" if state.paused else "since it was put on the queue"


def _drift_note(state: State) -> str:
    if state.drifted is None:
        return "no pass has ended yet"
    return f"{state.drifted:,} lost marks found" if state.drifted else "no lost mark found"


def _count(number: int | None) -> str:
    if number is None:
        return UNKNOWN
    return f"{number:,}"


def _limited(number: int | None) -> str:
    return f"{MOST:,}+" if number is not None and number >= MOST else _count(number)


def _waited(seconds: float | None) -> str:
    """How long the oldest execution has waited; 0 if none waits."""
    return UNKNOWN if seconds is None else age(seconds) if seconds else "-"
