"""The dashboard's page, and the two addresses that it asks while it is open."""

import json
from functools import partial
from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.http import require_safe

from harbor_refresh.dashboard.cards import cards
from harbor_refresh.dashboard.charts import CHARTS, SERIES, all_data, data, points_of, told
from harbor_refresh.dashboard.latest import Overview, latest
from harbor_refresh.executions.admin import live as live_page
from harbor_refresh.tasks.checks.registry import told as told_of
from harbor_refresh.tasks.conf import refresh_settings

PERMISSION = "harbor_executions.view_execution"
PARTS = "harbor_refresh/admin/dashboard"
#: The admin page that a finding links to, by the id of its check.
PLACES = {
    "status.quarantine": "admin:harbor_executions_quarantine_changelist",
    "status.deliveries": "admin:harbor_executions_delivery_changelist",
    "beat.rows": "admin:django_celery_beat_periodictask_changelist",
    "beat.alive": "admin:django_celery_beat_periodictask_changelist",
    "status.waiting": "admin:harbor_executions_execution_changelist",
}


def index_context(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Unfold calls this for the first page of the admin (DASHBOARD_CALLBACK)."""
    context["title"] = "Dashboard"
    if not _may_view(request):
        return context
    overview = latest()
    points = [] if "database" in overview.state.absent else points_of("hour")
    return context | {
        "is_shown": True,
        "cards": cards(overview),
        "parts": _parts(overview),
        "summary": summary(overview),
        "charts": [
            {"chart": chart, "data": json.dumps(data(chart, points)), "told": told(chart, points)}
            for chart in CHARTS
        ],
        "spans": list(SERIES),
        "taken_at": overview.at,
        "flower_url": refresh_settings().flower_url,
    }


@require_safe
def live(request: HttpRequest) -> HttpResponseBase:
    """Answer an open page: what has changed since it was sent, or 304."""

    def news() -> dict[str, Any]:
        overview = latest()
        return {"cards": cards(overview), "parts": _parts(overview), "summary": summary(overview)}

    return live_page.answer(request, partial(_may_view, request), news)


@require_safe
def chart_data(request: HttpRequest, span: str) -> HttpResponseBase:
    if span not in SERIES:
        return HttpResponse(status=404)
    return live_page.answer(request, partial(_may_view, request), lambda: all_data(points_of(span)))


def _may_view(request: HttpRequest) -> bool:
    return admin.site.has_permission(request) and request.user.has_perm(PERMISSION)


def summary(overview: Overview) -> str:
    """Say in one sentence whether something is wrong. Screen readers read it out when it changes."""
    wrong = [one for one in overview.findings if one.is_serious()]
    if not wrong:
        return "All is well."
    return told_of(wrong[0])["what"] if len(wrong) == 1 else f"{len(wrong)} things are wrong."


def _parts(overview: Overview) -> dict[str, str]:
    places = {name: reverse(page) for name, page in PLACES.items()}
    found = [
        {"finding": told_of(one), "href": places.get(str(one.id), ""), "is_wrong": one.is_serious()}
        for one in overview.findings
    ]
    # by name, because the order of their heartbeats changes all the time
    alive = sorted(overview.state.nodes or (), key=lambda node: node.name)
    context = {"found": found, "told": overview.told, "state": overview.state, "alive": alive}
    return {name: render_to_string(f"{PARTS}/{name}.html", context) for name in ("findings", "events", "nodes")}
