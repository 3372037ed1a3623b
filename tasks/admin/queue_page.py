"""The page of the queue: pauses, nodes, the executions that wait, and verbs, which the API and commands have too.

A link of the page asks for a verb, and its confirmation carries it out. The page keeps itself up to date, and
reads a bounded number of rows and keys. Without Redis it shows what the database knows.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.loader import render_to_string
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.safestring import SafeString

from harbor_refresh.executions.admin.base import ModelAdmin, Question, ask, is_confirmed, never
from harbor_refresh.executions.admin.formatters import NOTHING, execution_link, label, table
from harbor_refresh.executions.admin.site_pages import admin_url, live_view, page
from harbor_refresh.executions.errors import QueueUnavailable, Refused
from harbor_refresh.executions.news.audit import Target, Word, note, person_of
from harbor_refresh.executions.text import age, ago, plural
from harbor_refresh.tasks.broker import channels
from harbor_refresh.tasks.broker.celery_queues import TICKS, WORK
from harbor_refresh.tasks.jobs.limits import MOST_COUNTED, in_use
from harbor_refresh.tasks.models import Pause
from harbor_refresh.tasks.models.state import MAX_REASON
from harbor_refresh.tasks.news.state import LATELY_SECONDS
from harbor_refresh.tasks.operations.pauses import known_queues, name_of, pause, paused, resume, what_of
from harbor_refresh.tasks.pipeline.recovery import recover
from harbor_refresh.tasks.queue import execution_queue
from harbor_refresh.tasks.queue.claim import Stats
from harbor_refresh.tasks.queue.members import execution_id

MOST_WAITING = 20


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
    note(person_of(request), Word.RECOVER, Target.QUEUE, count=count)
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


@page(Pause)
class QueueAdmin(ModelAdmin):
    """Its list is the page of the queue, which keeps itself up to date; a pause has no page of its own."""

    def get_urls(self) -> list[URLPattern]:
        live = path("live/", live_view(self.may_follow, self.live), name="harbor_tasks_pause_live")
        return [live, *super().get_urls()]

    def live(self, request: HttpRequest) -> dict[str, Any]:
        """Look, and return the parts of the page by name. With Redis down, those that it knows are empty."""
        found = queue_tables(may_change=self.has_change_permission(request))
        parts: dict[str, str] = {"numbers": render_to_string("tasks/admin/queue_numbers.html", found)}
        for name in ("queues", "limits", "nodes", "waiting"):
            one = found.get(name)
            parts[name] = render_to_string("executions/admin/table.html", {"table": one}) if one else ""
        return {"parts": parts}

    has_add_permission = has_delete_permission = never

    def change_view(self, request: HttpRequest, *args: Any, **options: Any) -> HttpResponse:
        return HttpResponseRedirect("../../")

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        chosen = request.POST if request.method == "POST" else request.GET
        name, target = chosen.get("verb", ""), chosen.get("target", "")
        may_change = self.has_change_permission(request)
        if name not in VERBS:
            look = {"can_change": may_change, **self.live(request)}
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


def queue_tables(*, may_change: bool) -> dict[str, Any]:
    """Return the tables by name, `numbers`, and `notes` of what is paused or down. With Redis down, there are no
    numbers, and the queues and the limits are the only tables."""
    known = paused()
    shown: dict[str, Any] = {"notes": [_told(one) for one in known.values()]}
    if found := in_use():
        shown["limits"] = _limits(found)
    try:
        queue = execution_queue()
        look, waiting = queue.stats(), queue.oldest_waiting(MOST_WAITING)
        shown |= {
            "numbers": (
                ("Waiting", look.backlog, "executions on the queue"),
                ("In flight", look.in_flight, "claimed and not refreshed yet"),
                ("Failed before", look.failed_before, "of these two"),
                ("Live nodes", len(look.nodes), "worker processes"),
            ),
            "nodes": _nodes(look),
            "waiting": _waiting(look, waiting),
        }
    except QueueUnavailable as exc:
        shown["notes"].insert(0, str(exc))
    shown["queues"] = _queues(known, may_change=may_change)
    return shown


def _told(pause: Pause) -> str:
    reason = f": {pause.reason}" if pause.reason else ""
    return (
        f"{name_of(pause.queue)} was paused by {pause.by or '?'} {ago(pause.lasts.total_seconds())}{reason}. "
        "Its work waits until it is resumed."
    )


def _queues(known: Mapping[str, Pause], *, may_change: bool) -> dict[str, Any]:
    names = known_queues()
    try:
        lengths = channels.messages(names)
    except QueueUnavailable:
        lengths = {}
    rows = (
        [
            name,
            what_of(name),
            f"{lengths[name]:,}" if name in lengths else NOTHING,
            label("Paused", "warning") if name in known else label("Running", "success"),
            *[_button("resume" if name in known else "pause", name) if name != TICKS else NOTHING] * may_change,
        ]
        for name in names
    )
    columns = ("Queue", "Work", "Messages that wait", "State", *["Action"] * may_change)
    return table("Queues of the broker", columns, rows)


def _limits(found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    rows = (
        [
            format_html('<a href="{}">{}</a>', admin_url("harbor_tasks_limit_change", one["name"]), one["name"]),
            NOTHING if one["concurrency"] is None else f"{one['concurrency']:,}",
            one["rate"] or NOTHING,
            at_least(one["admitted"]),
            at_least(one["waiting"]),
        ]
        for one in found
    )
    return table("Limits of jobs", ["Task", "At once", "Rate", "Have a place", "Wait for the limit"], rows)


def at_least(count: int) -> str:
    return f"{MOST_COUNTED:,}+" if count >= MOST_COUNTED else f"{count:,}"


def _button(verb: str, target: object) -> SafeString:
    text = verb.capitalize()
    query = urlencode({"verb": verb, "target": target})
    return format_html('<a class="harbor-button" href="?{}" title="{} {}">{}</a>', query, text, target, text)


def _nodes(seen: Stats) -> dict[str, Any]:
    alive = [[name, label("alive", "success"), ago(seen.ago(heard))] for name, heard in sorted(seen.signs)]
    silent = [(name, seen.ago(heard)) for name, heard in seen.dead]
    dead = [[name, label("silent", "danger"), ago(since)] for name, since in silent if since <= LATELY_SECONDS]
    return table("Nodes", ["Node", "State", "Last heartbeat"], alive + dead, height=360)


def _waiting(seen: Stats, oldest: Iterable[tuple[str, int]]) -> dict[str, Any]:
    rows = (
        [execution_link(execution_id(member)), member.partition(":")[2], age(seen.ago(since))]
        for member, since in oldest
    )
    headers = ["Execution", "Vendor", "Waits for"]
    return table("Executions that wait, the oldest first", headers, rows, height=360)
