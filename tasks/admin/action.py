"""The screen of actions on many executions: how far each is, live; stop it, or go on with it."""

from collections.abc import Callable
from functools import partial
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.safestring import SafeString

from harbor_refresh.executions.access.audit import Kind, Origin, Word
from harbor_refresh.executions.actions.bulk import find, stop_action
from harbor_refresh.executions.admin import live
from harbor_refresh.executions.admin.audit import noted
from harbor_refresh.executions.admin.base import ReadOnlyAdmin
from harbor_refresh.executions.admin.formatters import NOTHING, elapsed, label, moment
from harbor_refresh.executions.admin.search import parse_id
from harbor_refresh.executions.admin.site_pages import page
from harbor_refresh.executions.admin.unfold_api import action, display
from harbor_refresh.executions.errors import NoSuchAction, Refused
from harbor_refresh.executions.models import Action
from harbor_refresh.executions.models.operations import State, Verb
from harbor_refresh.executions.page_look import render_part
from harbor_refresh.executions.queries.filters import Filter
from harbor_refresh.tasks.actions.bulk import resume_and_wake
from harbor_refresh.tasks.admin.bulk_actions import action_url
from harbor_refresh.tasks.admin.job_actions import may_act, may_delete

COLOURS: dict[str, str] = {
    State.QUEUED: "default",
    State.RUNNING: "info",
    State.DONE: "success",
    State.STOPPED: "warning",
    State.FAILED: "danger",
}
#: Milliseconds from one look of an open page at its action to the next.
LOOK_EVERY = 1_000


@page(Action)
class ActionAdmin(ReadOnlyAdmin):
    list_display = ("number", "verb", "shown_state", "chosen", "share", "changed", "failed", "person", "asked")
    list_filter = ("state", "verb", "requested_from")
    search_fields = ("requested_by",)
    search_help_text = "The number of the action, or the user, token or terminal that asked for it"
    fields = (("verb", "chosen"), ("person", "requested_from"), ("asked", "begun"), ("ended", "took"), "error")
    readonly_fields = ("chosen", "person", "asked", "begun", "ended", "took")
    change_form_before_template = "tasks/admin/action_progress.html"
    actions_detail = ("stop_this", "resume_this")

    def matching(self, rows: Any, text: str) -> Any:
        for word in text.split():
            found = parse_id(word)
            rows = rows.filter(requested_by__icontains=word) if found is None else rows.filter(pk=found)
        return rows

    def get_urls(self) -> list[URLPattern]:
        progress = self.admin_site.admin_view(self.progress_view)
        name = f"{self.opts.app_label}_{self.opts.model_name}_progress"
        return [path("<path:object_id>/progress/", progress, name=name), *super().get_urls()]

    def has_act_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        return may_act(request)

    def progress_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """The bar and the counts of an action, for its open page: one query by primary key. When the action has
        ended, the page is loaded once more, because its buttons are others then."""
        row = self._row(request, object_id)
        html = render_to_string("tasks/admin/action_bar.html", progress_context(row), request=request)
        return live.answer(request, live.encoded({"parts": {"bar": html}, "reload": row.has_ended}))

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        found = parse_id(object_id)
        row = None if found is None else Action.objects.filter(pk=found).first()
        context = {**(extra_context or {}), "look_every": LOOK_EVERY}
        if row is not None:
            context |= {**progress_context(row), "title": f"Action {row.pk}: {row.verb} executions"}
        return super().change_view(request, object_id, form_url, context)

    def get_actions_detail(self, request: HttpRequest, object_id: Any) -> list[Any]:
        """Leave out the actions that would do nothing. An action of a terminal goes on in a terminal, or here."""
        row = Action.objects.filter(pk=parse_id(str(object_id)) or 0).first()
        shown = {
            "stop": row is not None and not row.has_ended and not row.stop_asked,
            "resume": row is not None and row.state in (State.STOPPED, State.FAILED) and may_resume(request, row),
        }
        return [one for one in super().get_actions_detail(request, object_id) if shown.get(one.path, True)]

    @action(
        description="Stop this action",
        permissions=["act"],
        icon="stop_circle",
        url_path="stop",
        dialog={
            "title": "Stop this action?",
            "description": "It ends with the executions that it works on now. What is done stays done.",
            "form_submit_text": "Stop",
        },
    )
    def stop_this(self, request: HttpRequest, form: Any, object_id: str) -> HttpResponse:
        return self._act(request, self._row(request, object_id), Word.STOP, stop_action)

    @action(
        description="Go on",
        permissions=["act"],
        icon="play_circle",
        url_path="resume",
        dialog={
            "title": "Go on with this action?",
            "description": "Workers go on after the last execution that is done. Failed ones are not tried again.",
            "form_submit_text": "Go on",
        },
    )
    def resume_this(self, request: HttpRequest, form: Any, object_id: str) -> HttpResponse:
        row = self._row(request, object_id)
        if not may_resume(request, row):
            messages.error(request, "Nothing was done: you may not delete executions.")
            return HttpResponse(headers={"HX-Redirect": action_url(row)})
        return self._act(request, row, Word.RESUME, partial(resume_and_wake, origin=Origin.ADMIN))

    @staticmethod
    def _act(request: HttpRequest, row: Action, word: Word, act: Callable[[int], object]) -> HttpResponse:
        try:
            with noted(request, word, Kind.ACTION, row):
                act(row.pk)
        except Refused as exc:
            messages.warning(request, f"Nothing was done: {exc}.")
        return HttpResponse(headers={"HX-Redirect": action_url(row)})

    def _row(self, request: HttpRequest, object_id: str) -> Action:
        found = parse_id(object_id)
        if not self.has_view_permission(request):
            raise Http404
        try:
            return find(found or 0)
        except NoSuchAction as exc:
            raise Http404(str(exc)) from exc

    @display(description="Action")
    def number(self, row: Action) -> int:
        return row.pk

    @display(description="State")
    def shown_state(self, row: Action) -> SafeString:
        return state_label(row)

    @display(description="Executions")
    def chosen(self, row: Action) -> str:
        return filter_text(row)

    @display(description="Done")
    def share(self, row: Action) -> SafeString:
        return bar_of(row)

    @display(description="Asked for by")
    def person(self, row: Action) -> str:
        return row.requested_by or NOTHING

    @display(description="Asked for")
    def asked(self, row: Action) -> str | SafeString:
        return moment(row.created_at)

    @display(description="Begun")
    def begun(self, row: Action) -> str | SafeString:
        return moment(row.begun_at)

    @display(description="Ended")
    def ended(self, row: Action) -> str | SafeString:
        return moment(row.ended_at)

    @display(description="Took")
    def took(self, row: Action) -> str | SafeString:
        return elapsed(row.begun_at, row.ended_at)


def may_resume(request: HttpRequest, row: Action) -> bool:
    """A person who may not delete executions may not go on with a deletion."""
    return row.verb != Verb.DELETE or may_delete(request)


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
    drawn = render_part("progress", {"value": percent})
    bar = format_html('<span style="width: 8rem">{}</span>', drawn)
    return format_html('<span class="flex items-center gap-3">{}<span>{}%</span></span>', bar, percent)


def progress_context(row: Action) -> dict[str, Any]:
    return {
        "row": row,
        "state": state_label(row),
        "percent": None if row.progress is None else round(row.progress * 100, 1),
        "total": row.total,
        "counts": (
            ("Changed", row.changed, "The action changed these executions."),
            ("Left as they are", row.skipped, "There was nothing to do, or it was not possible yet."),
            ("Failed", row.failed, "The database refused; the first reason is below."),
        ),
    }
