"""The screen of actions on many executions: how far each is, live; stop it, or go on with it."""

from collections.abc import Callable
from functools import partial
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.safestring import SafeString

from harbor_refresh.executions.access.audit import Kind, Origin, Word
from harbor_refresh.executions.actions.bulk import find, stop_action
from harbor_refresh.executions.admin.audit import noted
from harbor_refresh.executions.admin.base import ReadOnlyAdmin
from harbor_refresh.executions.admin.confirmation import Question, asks_first
from harbor_refresh.executions.admin.formatters import NOTHING, column, elapsed, label, percent_bar
from harbor_refresh.executions.admin.live import live_view
from harbor_refresh.executions.admin.search import parse_id
from harbor_refresh.executions.admin.site_pages import page
from harbor_refresh.executions.errors import Refused
from harbor_refresh.executions.models import Action
from harbor_refresh.executions.models.operations import State, Verb
from harbor_refresh.executions.queries.filters import Filter
from harbor_refresh.tasks.admin.execution_actions import may_act, may_delete
from harbor_refresh.tasks.operations.bulk import resume_and_wake

COLOURS: dict[str, str] = {
    State.QUEUED: "default",
    State.RUNNING: "info",
    State.DONE: "success",
    State.STOPPED: "warning",
    State.FAILED: "danger",
}
#: Milliseconds from one look of an open page at its action to the next.
LOOK_EVERY = 1_000


def state_label(row: Action) -> SafeString:
    if row.stop_asked and not row.has_ended:
        return label("Stopping", "warning")
    return label(State(row.state).label, COLOURS[row.state])


def filter_text(row: Action) -> str:
    try:
        return Filter.from_json(row.filter).as_text() or "all"
    except Refused:  # another release of this program has written it
        return "unreadable"


def bar_of(row: Action) -> SafeString:
    """The bar and its percent; without a bar while the share is not known."""
    share = row.progress
    if share is None:
        return format_html("<span>{} so far</span>", f"{row.done:,}")
    percent = int(share * 100)
    bar = format_html('<div style="width: 8rem">{}</div>', percent_bar(percent))
    return format_html('<div class="flex items-center gap-3">{}<span>{}%</span></div>', bar, percent)


@page(Action)
class ActionAdmin(ReadOnlyAdmin):
    list_display = ("number", "verb", "shown_state", "chosen", "share", "changed", "failed", "person", "asked")
    list_filter = ("state", "verb", "requested_from")
    search_fields = ("requested_by",)
    search_help_text = "The number of the action, or the user, token or terminal that asked for it"
    fields = (("verb", "chosen"), ("person", "requested_from"), ("asked", "begun"), ("ended", "took"), "error")
    readonly_fields = ("chosen", "person", "asked", "begun", "ended", "took")
    form_head = "tasks/admin/action_progress.html"
    page_actions = ("stop", "resume")

    def matching(self, rows: Any, text: str) -> Any:
        for word in text.split():
            found = parse_id(word)
            rows = rows.filter(requested_by__icontains=word) if found is None else rows.filter(pk=found)
        return rows

    def get_urls(self) -> list[URLPattern]:
        progress = live_view(self, self.progress_view)
        name = "harbor_executions_action_progress"
        return [path("<path:object_id>/progress/", progress, name=name), *super().get_urls()]

    def has_act_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        return may_act(request)

    def progress_view(self, request: HttpRequest, object_id: str) -> dict[str, Any]:
        """The bar and the counts of an action, for its open page: one query by primary key. When the action has
        ended, the page is loaded once more, because its buttons are others then."""
        row = find(parse_id(object_id) or 0)
        html = render_to_string("tasks/admin/action_bar.html", progress_context(row), request=request)
        return {"parts": {"bar": html}, "reload": row.has_ended}

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **options: Any) -> Any:
        row = options["obj"]
        context |= {**progress_context(row), "title": f"Action {row.pk}: {row.verb} executions"}
        return super().render_change_form(request, context, *args, **options)

    def pointless(self, request: HttpRequest, row: Action) -> set[str]:
        """An action of a terminal goes on in a terminal, or here."""
        may_stop = not row.has_ended and not row.stop_asked
        may_go_on = row.state in (State.STOPPED, State.FAILED) and may_resume(request, row)
        return {name for name, is_useful in (("stop", may_stop), ("resume", may_go_on)) if not is_useful}

    @admin.action(description="Stop this action", permissions=["act"])
    @asks_first(
        Question("Stop {}", "It ends with the executions that it works on now. What is done stays done.", "Stop")
    )
    def stop(self, request: HttpRequest, queryset: QuerySet[Action]) -> None:
        self._act(request, queryset.get(), Word.STOP, stop_action)

    @admin.action(description="Go on", permissions=["act"])
    @asks_first(
        Question(
            "Go on with {}",
            "Workers go on after the last execution that is done. Failed ones are not tried again.",
            "Go on",
        )
    )
    def resume(self, request: HttpRequest, queryset: QuerySet[Action]) -> None:
        row = queryset.get()
        if may_resume(request, row):
            self._act(request, row, Word.RESUME, partial(resume_and_wake, origin=Origin.ADMIN))
        else:
            messages.error(request, "Nothing was done: you may not delete executions.")

    @staticmethod
    def _act(request: HttpRequest, row: Action, word: Word, act: Callable[[int], object]) -> None:
        try:
            with noted(request, word, Kind.ACTION, row):
                act(row.pk)
        except Refused as exc:
            messages.warning(request, f"Nothing was done: {exc}.")

    shown_state = column(state_label, "State")
    chosen = column(filter_text, "Executions")
    share = column(bar_of, "Done")
    number = column("pk", "Action", int)
    person = column("requested_by", "Asked for by", lambda name: name or NOTHING)
    asked = column("created_at", "Asked for")
    begun = column("begun_at", "Begun")
    ended = column("ended_at", "Ended")
    took = column(lambda row: elapsed(row.begun_at, row.ended_at), "Took")


def may_resume(request: HttpRequest, row: Action) -> bool:
    """A person who may not delete executions may not go on with a deletion."""
    return row.verb != Verb.DELETE or may_delete(request)


def progress_context(row: Action) -> dict[str, Any]:
    return {
        "row": row,
        "look_every": LOOK_EVERY,
        "state": state_label(row),
        "percent": (percent := None if row.progress is None else round(row.progress * 100, 1)),
        "bar": "" if percent is None else percent_bar(percent),
        "total": row.total,
        "counts": (
            ("Changed", row.changed, "The action changed these executions."),
            ("Left as they are", row.skipped, "There was nothing to do, or it was not possible yet."),
            ("Failed", row.failed, "The database refused; the first reason is below."),
        ),
    }
