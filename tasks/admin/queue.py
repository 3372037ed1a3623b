"""The page of the queue: pauses, the nodes, the executions that wait; and its verbs.

A link of the page asks for a verb, and its confirmation carries it out. The page keeps itself up to date, and
reads a bounded number of rows and keys. Without Redis it shows what the database knows.
"""

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.loader import render_to_string
from django.urls import URLPattern, path
from django.utils.safestring import SafeString

from harbor_refresh.executions.admin.base import ModelAdmin
from harbor_refresh.executions.admin.confirmation import Question, ask, is_confirmed
from harbor_refresh.executions.admin.live import live_view
from harbor_refresh.executions.admin.site_pages import page
from harbor_refresh.executions.errors import QueueUnavailable, Refused
from harbor_refresh.tasks.admin.queue_tables import TABLES, queue_tables
from harbor_refresh.tasks.admin.queue_verbs import CHANGE, VERBS
from harbor_refresh.tasks.broker.celery_queues import WORK
from harbor_refresh.tasks.models import Pause

EVERY_MS = 3_000


def parts(*, may_change: bool) -> dict[str, SafeString]:
    """Look, and return the parts of the page by name. With Redis away, those that it knows are empty."""
    found = queue_tables(may_change=may_change)
    tables = {
        name: render_to_string("executions/admin/table.html", {"table": found[name], **look})
        if name in found
        else SafeString("")
        for name, look in TABLES.items()
    }
    return {"numbers": render_to_string("tasks/admin/queue_numbers.html", found), **tables}


@page(Pause)
class QueueAdmin(ModelAdmin):
    """Its list is the page of the queue, which keeps itself up to date; a pause has no page of its own."""

    def get_urls(self) -> list[URLPattern]:
        live = path("live/", live_view(self, self.live), name="harbor_tasks_pause_live")
        return [live, *super().get_urls()]

    def live(self, request: HttpRequest) -> dict[str, Any]:
        return {"parts": parts(may_change=request.user.has_perm(CHANGE))}

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def change_view(self, request: HttpRequest, *args: Any, **options: Any) -> HttpResponse:
        return HttpResponseRedirect("../../")

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        chosen = request.POST if request.method == "POST" else request.GET
        name, target = chosen.get("verb", ""), chosen.get("target", "")
        if name not in VERBS:
            return self._show(request)
        verb = VERBS[name]
        if not request.user.has_perm(CHANGE):
            raise PermissionDenied
        if not is_confirmed(request):
            title = verb.title.format("refreshing" if target == WORK else target)
            question = Question(title, verb.ask(target), verb.submit, form=verb.form)
            return ask(self, request, question, hidden=[("verb", name), ("target", target)], cancel="?")
        try:
            messages.success(request, verb.act(request, target))
        except (Refused, QueueUnavailable) as exc:
            messages.error(request, f"{exc}")
        return HttpResponseRedirect(request.path)

    def _show(self, request: HttpRequest) -> HttpResponse:
        may_change = request.user.has_perm(CHANGE)
        return self.own_page(
            request,
            "tasks/admin/queue.html",
            "Queue",
            can_change=may_change,
            parts=parts(may_change=may_change),
            every=EVERY_MS,
        )
