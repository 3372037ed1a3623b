"""The dashboard: the first page of the admin, with its cards, and the two addresses that it asks every two seconds
while it is open (executions/admin/site_pages.py). `latest` reads the state once for all open pages of a process.
All that it reads is bounded, and the page opens while Redis hangs."""

import json
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import reverse

from harbor_refresh.admin.latest import CHARTS, SPANS, Overview, all_data, data, latest, told
from harbor_refresh.executions.admin.site_pages import live_view
from harbor_refresh.executions.text import age, ago, plural
from harbor_refresh.tasks.admin.queue_page import at_least
from harbor_refresh.tasks.broker.celery_queues import WORK
from harbor_refresh.tasks.checks.registry import told as told_of
from harbor_refresh.tasks.conf import refresh_settings
from harbor_refresh.tasks.news import samples
from harbor_refresh.tasks.news.state import ServiceState

PERMISSION = "harbor_executions.view_execution"
PARTS = "harbor_refresh/admin/dashboard"
QUARANTINED = "harbor_executions_execution?quarantined=yes"
#: The list of the admin that a finding links to, by the id of its check.
PLACES = {
    "status.quarantine": QUARANTINED,
    "status.deliveries": "harbor_executions_delivery",
    "status.webhooks": "harbor_executions_subscription",
    "beat.rows": "django_celery_beat_periodictask",
    "beat.alive": "django_celery_beat_periodictask",
    "status.waiting": "harbor_executions_execution",
}


def index_context(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Unfold calls this for the first page of the admin (DASHBOARD_CALLBACK)."""
    context["title"] = "Dashboard"
    if not _may_view(request):
        return context
    overview = latest()
    points = [] if "database" in overview.state.absent else samples.read("hour")
    return context | {
        "is_shown": True,
        **_news(overview),
        "charts": [
            {"chart": chart, "data": json.dumps(data(chart, points)), "told": told(chart, points)}
            for chart in CHARTS
        ],
        "spans": SPANS,
        "taken_at": overview.at,
        "flower_url": refresh_settings().flower_url,
    }


def _may_view(request: HttpRequest) -> bool:
    return admin.site.has_permission(request) and request.user.has_perm(PERMISSION)


def _news(overview: Overview) -> dict[str, Any]:
    return {"cards": cards(overview), "parts": _parts(overview)}


live = live_view(_may_view, lambda _: _news(latest()))
chart_data = live_view(_may_view, lambda _, span: all_data(samples.read(span)))


def _list_at(place: str) -> str:
    """The address of a list of the admin, which a query may narrow."""
    model, mark, query = place.partition("?")
    return reverse(f"admin:{model}_changelist") + mark + query


def _parts(overview: Overview) -> dict[str, str]:
    places = {name: _list_at(place) for name, place in PLACES.items()}
    found = [
        {"finding": told_of(one), "href": places.get(str(one.id), ""), "is_wrong": one.is_serious()}
        for one in overview.findings
    ]
    # by name, because the order of their heartbeats changes all the time
    alive = [(name, "alive", "success") for name in sorted(node.name for node in overview.state.nodes or ())]
    died = [(node.name, "died", "danger") for node in overview.state.dead or ()]
    context = {"found": found, "told": overview.told, "state": overview.state, "nodes": alive[:20] + died[:5]}
    parts = {name: render_to_string(f"{PARTS}/{name}.html", context) for name in ("findings", "events", "nodes")}
    return parts | {"count": plural(len(found), "finding")}


UNKNOWN = "?"
DEAD_LETTERS = "harbor_executions_delivery?state__exact=dead"
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
    state = overview.state
    wrong = {finding.id for finding in overview.findings if finding.is_serious()}

    def card(name: str, title: str, value: str, note: str, place: str = "") -> dict[str, str]:
        href = _list_at(place) if place else ""
        level = "wrong" if wrong & ABOUT.get(name, set()) else ""
        return {"id": name, "title": title, "value": value, "note": note, "level": level, "href": href}

    rates, slow, failed = (
        [value for point in overview.points if (value := getattr(point, name)) is not None]
        for name in ("refreshes", "slow", "failed")
    )
    refreshed = f"{fmean(rates[-6:]):,.1f}/s" if rates else UNKNOWN
    lateness = age(max(slow[-6:])) if slow else "-"
    failures = f"{sum(failed):,}" if failed else UNKNOWN
    lately = f"in the last two minutes; {_count(state.failed_before)} that wait have failed before"
    workers = _count(None if state.nodes is None else len(state.nodes))
    died = "Redis is down" if state.dead is None else f"worker processes; {len(state.dead)} died in the last hour"
    drift = "no pass has ended yet" if state.drifted is None else f"{plural(state.drifted, 'lost mark')} found"
    jobs = "the broker is down" if "broker" in state.absent else "run now"
    if state.messages is not None:
        jobs += f"; {plural(sum(state.messages.values()), 'message waits', 'messages wait')} with the broker"
    oldest = state.oldest_waiting  # 0 if none waits
    waited = UNKNOWN if oldest is None else age(oldest) if oldest else "-"
    held, letters = _limited(state.quarantined), _limited(state.dead_letters)
    return [
        card("backlog", "Waiting", _count(state.backlog), "executions to be refreshed", PLACES["status.waiting"]),
        card("in_flight", "In flight", _count(state.in_flight), "claimed by a worker, and not refreshed yet"),
        card("oldest", "Oldest waiting", waited, _waiting_note(state)),
        card("refreshes", "Refreshed", refreshed, "executions a second, in the last minute"),
        card("lateness", "Report to status", lateness, "95 of 100 statuses followed their report within this"),
        card("workers", "Live nodes", workers, died),
        card("ticks", "Last tick", ago(state.last_tick), f"beat sent something {ago(state.beat_silent)}"),
        card("reconcile", "Last reconcile", ago(state.last_reconcile), drift),
        card("jobs", "Jobs", _count(state.jobs_in_progress), jobs),
        *([card(*_limits(overview.limits), "harbor_tasks_pause")] if overview.limits else []),
        card("quarantined", "Quarantined", held, "executions that failed too often", QUARANTINED),
        card("failures", "Failed refreshes", failures, lately),
        card("dead_letters", "Dead letters", letters, "notifications that were given up", DEAD_LETTERS),
    ]


def _limits(limits: Sequence[Mapping[str, Any]]) -> tuple[str, str, str, str]:
    """The limit for which the most jobs wait stands in the note."""
    first = max(limits, key=lambda one: (one["waiting"], one["admitted"]))
    admitted, waiting = _limited(first["admitted"]), _limited(first["waiting"])
    note = f"{first['name']}: {admitted} have a place, {waiting} wait"
    return "limits", "Waiting for a limit", _limited(sum(one["waiting"] for one in limits)), note


def _waiting_note(state: ServiceState) -> str:
    if state.pause:
        return "no worker claims: the database was down"
    return "paused by an operator" if WORK in (state.paused or ()) else "since it was put on the queue"


def _count(number: int | None) -> str:
    return UNKNOWN if number is None else f"{number:,}"


def _limited(number: int | None) -> str:
    return UNKNOWN if number is None else at_least(number)
