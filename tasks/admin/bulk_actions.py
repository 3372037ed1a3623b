"""The actions of the list of executions: on the rows chosen, or on all that match. Each asks first."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import admin, messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse

from harbor_refresh.executions.access.audit import Note, Origin, Word, person_of
from harbor_refresh.executions.actions.action_pages import Counted, count, highest_id
from harbor_refresh.executions.admin.audit import write_django_log
from harbor_refresh.executions.admin.confirmation import is_confirmed, question
from harbor_refresh.executions.admin.search import parse_id
from harbor_refresh.executions.admin.site_pages import admin_url
from harbor_refresh.executions.admin.unfold_api import ModelAdmin
from harbor_refresh.executions.attached.attachment import is_attached
from harbor_refresh.executions.errors import Refused
from harbor_refresh.executions.models import Action, Execution
from harbor_refresh.executions.models.operations import Verb
from harbor_refresh.executions.text import plural
from harbor_refresh.tasks.actions.bulk import ask_and_wake
from harbor_refresh.tasks.admin.all_matching import all_matching
from harbor_refresh.tasks.admin.job_actions import (
    HARBORS,
    MAX_CHOSEN,
    delete_now,
    may_act,
    may_delete,
    resume_now,
    retry_now,
    stop_now,
)
from harbor_refresh.tasks.admin.refresh_action import refresh_now

#: A confirmation counts no further, and no longer.
MAX_COUNTED = 10_000
COUNT_SECONDS = 1.0


@dataclass(frozen=True)
class Question:
    """What a confirmation says of a verb. `now` acts on a few executions in the request."""

    title: str
    effect: str
    submit: str
    permission: str
    now: Callable[[HttpRequest, Sequence[int]], None]


def _refresh(request: HttpRequest, ids: Sequence[int]) -> None:
    refresh_now(request, list(Execution.objects.filter(pk__in=ids).values_list("pk", "vendor_type")))


QUESTIONS: dict[Verb, Question] = {
    Verb.REFRESH: Question(
        "Refresh {} now",
        "Brings each status to what the tasks say, without the queue. Executions in quarantine are left alone.",
        "Refresh",
        "refresh",
        _refresh,
    ),
    Verb.STOP: Question(
        "Stop {}",
        "Their unfinished tasks become Stopped. Waiting jobs do not begin any more, running jobs are asked to "
        "stop. Executions that have ended stay as they are.",
        "Stop",
        "refresh",
        stop_now,
    ),
    Verb.RETRY: Question(
        "Try the failed jobs of {} again",
        "Each failed job runs once more, and so do the jobs of its chain that were stopped because of it. "
        "Executions without failed jobs stay as they are.",
        "Try again",
        "refresh",
        retry_now,
    ),
    Verb.RESUME: Question(
        "Resume {}",
        "Each job that was stopped runs once more. Jobs that were stopped because a job before them failed wait "
        "for a retry of that job. Executions without stopped jobs stay as they are.",
        "Resume",
        "refresh",
        resume_now,
    ),
    Verb.DELETE: Question(
        "Delete {}",
        "Their tasks, jobs and history are deleted with them, for good. Executions that have not ended are not "
        "deleted: stop them first.",
        "Delete",
        "remove",
        delete_now,
    ),
}


class BulkActionsMixin(ModelAdmin):
    actions = ("refresh_selected", "stop_selected", "retry_selected", "resume_selected", "remove_selected")
    list_disable_select_all = False

    def has_refresh_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return may_act(request)

    def has_remove_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return may_delete(request)

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """Leave out what is Harbor's."""
        actions = super().get_actions(request)
        left = {f"{verb}_selected" for verb in HARBORS} if is_attached() else set()
        return {name: one for name, one in actions.items() if name not in left}

    @admin.action(description="Refresh now", permissions=["refresh"])
    def refresh_selected(self, request: HttpRequest, queryset: QuerySet[Execution]) -> HttpResponse | None:
        return self._answer(request, queryset, Verb.REFRESH)

    @admin.action(description="Stop", permissions=["refresh"])
    def stop_selected(self, request: HttpRequest, queryset: QuerySet[Execution]) -> HttpResponse | None:
        return self._answer(request, queryset, Verb.STOP)

    @admin.action(description="Try failed jobs again", permissions=["refresh"])
    def retry_selected(self, request: HttpRequest, queryset: QuerySet[Execution]) -> HttpResponse | None:
        return self._answer(request, queryset, Verb.RETRY)

    @admin.action(description="Resume stopped jobs", permissions=["refresh"])
    def resume_selected(self, request: HttpRequest, queryset: QuerySet[Execution]) -> HttpResponse | None:
        return self._answer(request, queryset, Verb.RESUME)

    @admin.action(description="Delete", permissions=["remove"])
    def remove_selected(self, request: HttpRequest, queryset: QuerySet[Execution]) -> HttpResponse | None:
        return self._answer(request, queryset, Verb.DELETE)

    def _answer(self, request: HttpRequest, chosen: QuerySet[Execution], verb: Verb) -> HttpResponse | None:
        """Ask first; then act on the rows chosen in this request, or let workers act on all that match."""
        if request.POST.get("select_across") != "1":
            ids = list(chosen.order_by("pk").values_list("pk", flat=True)[: MAX_CHOSEN + 1])
            if is_confirmed(request):
                QUESTIONS[verb].now(request, ids)
                return None
            return self._ask(request, verb, plural(len(ids), "execution"), ids)
        try:
            matching = all_matching(request.GET)
            if is_confirmed(request):
                return self._in_background(request, verb, matching)
            counted = count(matching, seconds=COUNT_SECONDS, at_most=MAX_COUNTED)
        except Refused as exc:
            messages.error(request, f"Nothing was done: {exc}.")
            return None
        if counted.is_complete and not counted.count:
            messages.warning(request, "Nothing was done: no execution matches any more.")
            return None
        return self._ask(
            request,
            verb,
            how_many(counted),
            [],
            matching=matching.as_text() or "none, so all executions",
            highest=counted.highest,
        )

    def _ask(
        self, request: HttpRequest, verb: Verb, number: str, ids: Sequence[int], **more: Any
    ) -> TemplateResponse:
        asked = QUESTIONS[verb]
        return question(
            self,
            request,
            [(pk, pk) for pk in ids],
            title=asked.title,
            number=number,
            effect=asked.effect,
            submit_text=asked.submit,
            is_deletion=verb == Verb.DELETE,
            **more,
        )

    def _in_background(self, request: HttpRequest, verb: Verb, matching: Any) -> HttpResponse:
        """Ask for an action on the executions that were counted, and not on later ones."""
        counted = parse_id(request.POST.get("highest", ""))
        person = person_of(request)
        with transaction.atomic():
            action = ask_and_wake(
                verb,
                matching,
                by=person.name,
                origin=Origin.ADMIN,
                address=person.address,
                everything=True,
                highest=None if counted is None else min(counted, highest_id()),
            )
            write_django_log(request, Word(verb), action, Note(detail=f"asked for: {matching.as_text() or 'all'}"))
        return HttpResponseRedirect(action_url(action))


def how_many(counted: Counted) -> str:
    if counted.is_complete:
        return plural(counted.count, "execution")
    return f"more than {counted.count:,} executions" if counted.count else "an unknown number of executions"


def action_url(action: Action) -> str:
    return admin_url("harbor_executions_action_change", action.pk)
