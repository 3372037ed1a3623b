"""The page of the queue: pauses, the claims of each node, the executions that wait, quarantine; and its verbs.

A link of the page asks for a verb, and a page of its own confirms it. The page keeps itself up to date, and reads
a bounded number of rows and keys. Without Redis it shows what the database knows.
"""

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.views.decorators.http import require_safe

from harbor_refresh.executions.admin import live
from harbor_refresh.executions.admin.live_access import remembered_permissions
from harbor_refresh.executions.admin.site_pages import page
from harbor_refresh.executions.admin.unfold_api import ModelAdmin, TextInputWidget
from harbor_refresh.executions.database import absence_translated
from harbor_refresh.executions.errors import DatabaseAway, QueueUnavailable, Refused
from harbor_refresh.tasks.admin.queue_parts import EVERY_MS, parts, shared_answer
from harbor_refresh.tasks.admin.queue_verbs import CHANGE, RELEASE, VERBS, VIEW, Verb
from harbor_refresh.tasks.celery_queues import WORK
from harbor_refresh.tasks.models import Pause
from harbor_refresh.tasks.models.state import MAX_REASON


@page(Pause)
class QueueAdmin(ModelAdmin):
    """Its list is the page of the queue, which keeps itself up to date; a pause has no page of its own."""

    def get_urls(self) -> list[URLPattern]:
        return [path("live/", require_safe(self.live), name="harbor_tasks_pause_live"), *super().get_urls()]

    def live(self, request: HttpRequest) -> HttpResponse:
        """Answer an open page: what has changed since it was sent, or 304."""
        found = remembered_permissions(request, self.admin_site, VIEW, CHANGE, RELEASE)
        if not found & {VIEW, CHANGE}:
            return HttpResponse(status=403)
        try:
            with absence_translated():
                may = {"may_change": CHANGE in found, "may_release": RELEASE in found}
                news = shared_answer(self.admin_site.name, **may)
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
        if not request.user.has_perm(verb.permission):
            raise PermissionDenied
        if request.method != "POST":
            return self._ask(request, name, verb, target)
        try:
            messages.success(request, verb.act(request, target))
        except (Refused, QueueUnavailable) as exc:
            messages.error(request, f"{exc}")
        return HttpResponseRedirect(request.path)

    def _ask(self, request: HttpRequest, name: str, verb: Verb, target: str) -> HttpResponse:
        title = verb.title.format("refreshing" if target == WORK else target)
        field = TextInputWidget({"id": "id_reason", "maxlength": MAX_REASON, "autofocus": True})
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": f"{title}?",
            "verb": name,
            "target": target,
            "explanation": verb.ask(target),
            "verb_text": verb.submit,
            "reason": field.render("reason", "") if verb.takes_reason else "",
        }
        return TemplateResponse(request, "tasks/admin/queue/confirmation.html", context)

    def _show(self, request: HttpRequest) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": "Queue",
            "can_change": (may_change := request.user.has_perm(CHANGE)),
            "parts": parts(may_change=may_change, may_release=request.user.has_perm(RELEASE)),
            "every": EVERY_MS,
        }
        return TemplateResponse(request, "tasks/admin/queue.html", context)
