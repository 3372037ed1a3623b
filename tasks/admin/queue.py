"""The page of the queue: pauses, the nodes, the executions that wait; and its verbs.

A link of the page asks for a verb, and its confirmation carries it out. The page keeps itself up to date, and
reads a bounded number of rows and keys. Without Redis it shows what the database knows.

Open pages ask every EVERY_MS. They share one look: a process makes the parts once in FRESH_SECONDS for all pages
of a site whose users may do the same. A page that is loaded, for example after a pause, always looks by itself.
FRESH_SECONDS is shorter than EVERY_MS, so that page is not told afterwards what was before.
"""

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.loader import render_to_string
from django.urls import URLPattern, path
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from harbor_refresh.executions.admin import live
from harbor_refresh.executions.admin.base import ModelAdmin
from harbor_refresh.executions.admin.confirmation import Question, ask, is_confirmed
from harbor_refresh.executions.admin.live import Shared, remembered_permissions
from harbor_refresh.executions.admin.site_pages import page
from harbor_refresh.executions.database import absence_translated
from harbor_refresh.executions.errors import DatabaseAway, QueueUnavailable, Refused
from harbor_refresh.tasks.admin.queue_tables import TABLES, queue_tables
from harbor_refresh.tasks.admin.queue_verbs import CHANGE, VERBS, VIEW
from harbor_refresh.tasks.broker.celery_queues import WORK
from harbor_refresh.tasks.models import Pause

EVERY_MS = 3_000
FRESH_SECONDS = 2.5
STALE_SECONDS = 10.0

#: The answers for open pages: by the name of the site, because links stay on it, and by what the user may do.
_answers: dict[tuple[str, bool], Shared[bytes]] = {}


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
        return [path("live/", require_safe(self.live), name="harbor_tasks_pause_live"), *super().get_urls()]

    def live(self, request: HttpRequest) -> HttpResponse:
        """Answer an open page: what has changed since it was sent, or 304."""
        found = remembered_permissions(request, self.admin_site, VIEW, CHANGE)
        if not found:
            return HttpResponse(status=403)
        try:
            with absence_translated():
                news = self._answers(may_change=CHANGE in found).value()
        except DatabaseAway:
            news = None
        return HttpResponse(status=503) if news is None else live.answer(request, news)

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

    def _answers(self, *, may_change: bool) -> Shared[bytes]:
        def make() -> bytes:
            return live.encoded({"parts": parts(may_change=may_change)})

        key = (self.admin_site.name, may_change)
        return _answers.setdefault(key, Shared(make, fresh=FRESH_SECONDS, stale=STALE_SECONDS))
