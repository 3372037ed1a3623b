"""Cards: the numbers of the overview, each with what it means."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from django.urls import reverse

from harbor_refresh.dashboard.latest import Overview
from harbor_refresh.executions.durations import age, ago
from harbor_refresh.executions.text import plural
from harbor_refresh.tasks.overview.state import MOST, State

UNKNOWN = "?"
DEAD_LETTERS = "executions_delivery?state__exact=dead"
#: The checks that are about a card. The level of a card is `wrong` if one of them finds an error.
ABOUT = {
    "backlog": {"redis.reachable"},
    "oldest": {"status.waiting"},
    "workers": {"workers.alive"},
    "quarantined": {"status.quarantine"},
    "dead_letters": {"status.deliveries"},
    "ticks": {"workers.ticks", "beat.alive", "beat.rows"},
    "reconcile": {"status.reconcile"},
}


def cards(overview: Overview) -> list[dict[str, str]]:
    state, points = overview.state, overview.points
    wrong = {finding.id for finding in overview.findings if finding.is_serious()}

    def card(name: str, title: str, value: str, note: str, page: str = "") -> dict[str, str]:
        model, mark, query = page.partition("?")
        href = reverse(f"admin:harbor_{model}_changelist") + mark + query if page else ""
        level = "wrong" if wrong & ABOUT.get(name, set()) else ""
        return {"id": name, "title": title, "value": value, "note": note, "level": level, "href": href}

    rates = _known(point.refreshes for point in points)
    slow = _known(point.slow for point in points)
    failed = _known(point.failed for point in points)
    refreshed = f"{fmean(rates[-6:]):,.1f}/s" if rates else UNKNOWN
    lateness = age(max(slow[-6:])) if slow else "-"
    failures = f"{sum(failed):,}" if failed else UNKNOWN
    lately = f"in the last two minutes; {_count(state.failed_before)} that wait have failed before"
    workers = UNKNOWN if state.nodes is None else f"{len(state.nodes):,}"
    held, letters = _limited(state.quarantined), _limited(state.dead_letters)
    return [
        card("backlog", "Waiting", _count(state.backlog), "executions to be refreshed", "executions_execution"),
        card("in_flight", "In flight", _count(state.in_flight), "claimed by a worker, and not refreshed yet"),
        card("oldest", "Oldest waiting", _waited(state.oldest_waiting), _waiting_note(state)),
        card("refreshes", "Refreshed", refreshed, "executions a second, in the last minute"),
        card("lateness", "Report to status", lateness, "95 of 100 statuses followed their report within this"),
        card("workers", "Worker processes", workers, _workers_note(state)),
        card("ticks", "Last tick", ago(state.last_tick), f"beat sent something {ago(state.beat_silent)}"),
        card("reconcile", "Last reconcile", ago(state.last_reconcile), _drift_note(state)),
        card("jobs", "Jobs", _count(state.jobs_in_progress), _jobs_note(state)),
        *([card(*_limits(overview.limits), "tasks_pause")] if overview.limits else []),
        card("quarantined", "Quarantined", held, "executions that failed too often", "executions_quarantine"),
        card("failures", "Failed refreshes", failures, lately),
        card("dead_letters", "Dead letters", letters, "notifications that were given up", DEAD_LETTERS),
    ]


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _workers_note(state: State) -> str:
    if state.nodes is None:
        return "Redis is away"
    dead = len(state.dead or ())
    return f"{dead} died within the last hour" if dead else "alive, none died within the last hour"


def _jobs_note(state: State) -> str:
    if state.messages is None:
        return "the broker is away"
    return f"run now; {plural(sum(state.messages.values()), 'message waits', 'messages wait')} with the broker"


def _limits(limits: Sequence[Mapping[str, Any]]) -> tuple[str, str, str, str]:
    """The limit for which the most jobs wait stands in the note."""
    first = max(limits, key=lambda one: (one["waiting"], one["admitted"]))
    note = f"{first['name']}: {first['admitted']:,} have a place, {first['waiting']:,} wait"
    return "limits", "Waiting for a limit", _limited(sum(one["waiting"] for one in limits)), note


def _waiting_note(state: State) -> str:
    if state.pause:
        return "no worker claims: the database was away"
    return "paused by an operator" if state.paused else "since it was put on the queue"


def _drift_note(state: State) -> str:
    if state.drifted is None:
        return "no pass has ended yet"
    return f"{state.drifted:,} lost marks found" if state.drifted else "no lost mark found"


def _count(number: int | None) -> str:
    return UNKNOWN if number is None else f"{number:,}"


def _limited(number: int | None) -> str:
    return f"{MOST:,}+" if number is not None and number >= MOST else _count(number)


def _waited(seconds: float | None) -> str:
    """How long the oldest execution has waited; 0 if none waits."""
    return UNKNOWN if seconds is None else age(seconds) if seconds else "-"
