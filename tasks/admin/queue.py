"""The page of the queue: pauses, nodes, the executions that wait, and verbs, which the API and commands have too.

A link of the page asks for a verb, and its confirmation carries it out. The page keeps itself up to date, and
reads a bounded number of rows and keys. Without Redis it shows what the database knows.
"""

from collections.abc import Callable, Mapping
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.loader import render_to_string
from django.urls import URLPattern, path
from django.utils.safestring import SafeString

from harbor_refresh.executions.access.audit import Kind, Word, note, person_of
from harbor_refresh.executions.admin.base import ModelAdmin, never
from harbor_refresh.executions.admin.confirmation import Question, ask, is_confirmed
from harbor_refresh.executions.admin.live import live_view
from harbor_refresh.executions.admin.site_pages import page
from harbor_refresh.executions.errors import QueueUnavailable, Refused
from harbor_refresh.executions.text import plural
from harbor_refresh.tasks.admin.queue_tables import TABLES, queue_tables
from harbor_refresh.tasks.broker.celery_queues import WORK
from harbor_refresh.tasks.models import Pause
from harbor_refresh.tasks.models.state import MAX_REASON
from harbor_refresh.tasks.operations.pauses import name_of, pause, resume
from harbor_refresh.tasks.pipeline.recovery import recover

CHANGE = "harbor_tasks.change_pause"
EVERY_MS = 3_000


class ReasonForm(forms.Form):
    reason = forms.CharField(
        max_length=MAX_REASON,
        required=False,
        widget=forms.TextInput({"autofocus": True}),
        help_text="The queue page, the commands and the API show it while the queue is paused.",
    )


def _pause(request: HttpRequest, queue: str) -> str:
    done = pause(queue, person_of(request), request.POST.get("reason", ""))
    return f"{name_of(queue)} is paused." if done else f"{name_of(queue)} was paused before."


def _resume(request: HttpRequest, queue: str) -> str:
    done = resume(queue, person_of(request))
    return f"{name_of(queue)} is resumed." if done else f"{name_of(queue)} was not paused."


def _recover(request: HttpRequest, _: str) -> str:
    count = recover()
    note(person_of(request), Word.RECOVER, Kind.QUEUE, count=count)
    return f"{plural(count, 'execution')} of dead nodes went back on the queue."


#: What each verb asks first, and what then does it to a queue and says what happened.
VERBS: Mapping[str, tuple[Question, Callable[[HttpRequest, str], str]]] = {
    "pause": (
        Question(
            "Pause {}",
            "Executions, jobs or notifications of this queue that have not begun wait. What is claimed or runs "
            "still ends. Reports are stored as before, and plain Celery tasks are not paused. It stays paused "
            "until it is resumed, whatever restarts in between.",
            form=ReasonForm,
        ),
        _pause,
    ),
    "resume": (
        Question("Resume {}", "The work that waits is taken within seconds, as fast as the workers can."),
        _resume,
    ),
    "recover": (
        Question(
            "Recover now",
            "Claims of dead nodes, and claims that are too old, go back on the queue. While beat and a worker "
            "run, this happens by itself every few seconds.",
        ),
        _recover,
    ),
}


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

    has_add_permission = has_delete_permission = never

    def change_view(self, request: HttpRequest, *args: Any, **options: Any) -> HttpResponse:
        return HttpResponseRedirect("../../")

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        chosen = request.POST if request.method == "POST" else request.GET
        name, target = chosen.get("verb", ""), chosen.get("target", "")
        may_change = request.user.has_perm(CHANGE)
        if name not in VERBS:
            look = {"can_change": may_change, "parts": parts(may_change=may_change), "every": EVERY_MS}
            return self.own_page(request, "tasks/admin/queue.html", "Queue", **look)
        if not may_change:
            raise PermissionDenied
        question, act = VERBS[name]
        if not is_confirmed(request):
            of = "refreshing" if target == WORK else target
            return ask(self, request, question, of=of, hidden=[("verb", name), ("target", target)], cancel="?")
        try:
            messages.success(request, act(request, target))
        except (Refused, QueueUnavailable) as exc:
            messages.error(request, f"{exc}")
        return HttpResponseRedirect(request.path)
