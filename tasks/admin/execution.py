"""The screen of executions with the queue, the jobs and the actions. ExecutionAdmin has the columns
(executions/admin/execution.py).

The list and the page of one execution have the same actions. Each asks first. Of the list, it acts on the rows
chosen in the request, or workers act on all that match.
"""

from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.loader import render_to_string
from django.urls import URLPattern, path

from harbor_refresh.executions.access.audit import person_of
from harbor_refresh.executions.admin.base import may
from harbor_refresh.executions.admin.confirmation import Question, ask, asks_first, is_confirmed
from harbor_refresh.executions.admin.execution import ExecutionAdmin
from harbor_refresh.executions.admin.filters import filter_of, parse_id
from harbor_refresh.executions.admin.formatters import (
    JOB_EXECUTION_PARAMETER,
    column,
    is_quarantined,
    list_url,
    once,
    table,
    task_link,
)
from harbor_refresh.executions.admin.live import live_view
from harbor_refresh.executions.admin.site_pages import admin_url, page
from harbor_refresh.executions.errors import QueueUnavailable, Refused
from harbor_refresh.executions.models import Execution
from harbor_refresh.executions.models.operations import Verb
from harbor_refresh.executions.queries.chosen_pages import Counted, chooses_bulk, count, highest_id
from harbor_refresh.executions.queries.filters import has_jobs
from harbor_refresh.executions.status import Status, is_final
from harbor_refresh.executions.text import plural
from harbor_refresh.tasks.admin.execution_actions import (
    MAX_CHOSEN,
    act_now,
    harbors,
    may_delete,
    may_run_again,
    release_now,
)
from harbor_refresh.tasks.admin.job_graph import drawn
from harbor_refresh.tasks.admin.task import check_in_bar, heard_at
from harbor_refresh.tasks.jobs.queries import running_jobs
from harbor_refresh.tasks.jobs.terms import described
from harbor_refresh.tasks.operations import bulk
from harbor_refresh.tasks.pipeline.diagnosis import diagnose

#: A confirmation counts no further, and no longer.
MAX_COUNTED, COUNT_SECONDS = 10_000, 1.0
#: So many running jobs are shown on the page of an execution.
MOST_RUNNING = 20


def execution_action(verb: Verb, description: str, title: str, effect: str) -> Callable[..., HttpResponse | None]:
    """An action on executions: the request does the verb to a few, and workers do it to many."""
    is_deletion = verb == Verb.DELETE
    question = Question(title, effect, is_deletion)

    @admin.action(description=description, permissions=["remove" if is_deletion else "refresh"])
    def act(self: Any, request: HttpRequest, queryset: QuerySet[Execution]) -> HttpResponse | None:
        if request.POST.get("select_across") == "1" and "action" in request.POST:  # of the list
            return _on_all_that_match(self, request, verb, question)
        ids = list(queryset.order_by("pk").values_list("pk", flat=True)[: MAX_CHOSEN + 1])
        if not is_confirmed(request):
            return ask(self, request, question, rows=[(pk, pk) for pk in ids])
        act_now(request, verb, ids)
        return None

    return act


def _on_all_that_match(
    screen: "ExecutionWithActionsAdmin", request: HttpRequest, verb: Verb, question: Question
) -> HttpResponse | None:
    try:
        matching = filter_of(request.GET)
        if is_confirmed(request):
            return _in_background(request, verb, matching)
        counted = count(matching, seconds=COUNT_SECONDS, at_most=MAX_COUNTED)
    except Refused as exc:
        messages.error(request, f"Nothing was done: {exc}.")
        return None
    if counted.is_complete and not counted.count:
        messages.warning(request, "Nothing was done: no execution matches any more.")
        return None
    chosen = matching.as_text() or "none, so all executions"
    return ask(
        screen, request, question, of=how_many(counted), hidden=[("highest", counted.highest)], matching=chosen
    )


def _in_background(request: HttpRequest, verb: Verb, matching: Any) -> HttpResponse:
    """Ask for the verb for the executions that were counted, and not for later ones."""
    if verb in (Verb.RETRY, Verb.RESUME) and chooses_bulk(matching) and not may_delete(request):
        raise Refused("a deletion of many may be among them, and you may not delete executions")
    counted = parse_id(request.POST.get("highest", ""))
    highest = None if counted is None else min(counted, highest_id())
    execution = bulk.ask(verb, matching, person_of(request), everything=True, highest=highest)
    return HttpResponseRedirect(admin_url("harbor_executions_execution_change", execution.pk))


def how_many(counted: Counted) -> str:
    if counted.is_complete:
        return plural(counted.count, "execution")
    return f"more than {counted.count:,} executions" if counted.count else "an unknown number of executions"


its_terms = once("its_terms", described)


@page(Execution)
class ExecutionWithActionsAdmin(ExecutionAdmin):
    actions = ("refresh", "stop", "retry", "resume", "remove")
    page_actions = ("refresh", "release", "stop", "retry", "resume", "remove")
    acts_on_all = True
    has_refresh_permission = may("harbor_executions.change_execution")
    has_remove_permission = may("harbor_executions.delete_execution")
    has_release_permission = may("harbor_executions.change_quarantine")
    terms_of_it = column(its_terms, "Terms")

    def get_urls(self) -> list[URLPattern]:
        name = "harbor_executions_execution"
        place = path("<path:object_id>/place/", live_view(self, self.place), name=f"{name}_place")
        running = path("<path:object_id>/running/", live_view(self, self.running), name=f"{name}_running")
        return [place, running, *super().get_urls()]

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        left_out = harbors()
        return {name: one for name, one in super().get_actions(request).items() if name not in left_out}

    def get_fieldsets(self, request: HttpRequest, obj: Execution | None = None) -> Any:
        (title, options), *others = super().get_fieldsets(request, obj)
        terms = ("terms_of_it",) if obj and its_terms(obj) else ()
        return [(title, {**options, "fields": (*options["fields"], *terms)}), *others]

    def useful(self, request: HttpRequest, row: Any) -> dict[str, bool]:
        """A quarantined execution is released, and not refreshed."""
        again = row.made.counts if row.has_jobs and may_run_again(request, row) else {}
        has_ended, is_held = is_final(row.status), is_quarantined(row)
        return {
            "refresh": not is_held,
            "release": is_held,
            "stop": not has_ended,
            "retry": bool(again.get(Status.ERROR)),
            "resume": bool(again.get(Status.STOPPED)),
            "remove": has_ended,
        } | harbors()

    refresh = execution_action(
        Verb.REFRESH,
        "Refresh now",
        "Refresh {} now",
        "Brings each status to what the tasks say, without the queue. Executions in quarantine stay there.",
    )
    stop = execution_action(
        Verb.STOP,
        "Stop",
        "Stop {}",
        "Unfinished tasks become Stopped. Waiting jobs do not begin any more, running jobs are asked to stop. "
        "Executions that have ended stay as they are.",
    )
    retry = execution_action(
        Verb.RETRY,
        "Retry failed jobs",
        "Retry the failed jobs of {}",
        "Each failed job runs once more, and so do the jobs of its chain that were stopped because of it. "
        "Executions without failed jobs stay as they are.",
    )
    resume = execution_action(
        Verb.RESUME,
        "Resume stopped jobs",
        "Resume {}",
        "Each job that was stopped runs once more. Jobs that were stopped because a job before them failed "
        "wait for a retry of that job. Executions without stopped jobs stay as they are.",
    )
    remove = execution_action(
        Verb.DELETE,
        "Delete",
        "Delete {}",
        "Tasks, jobs and history are deleted with them, for good. Executions that have not ended are not "
        "deleted: stop them first.",
    )

    @admin.action(description="Release from quarantine", permissions=["release"])
    @asks_first(
        Question(
            "Release {} from quarantine",
            "Its refresh failed too often, so workers leave it alone. A release puts it on the queue for another "
            "try, as a report does.",
        )
    )
    def release(self, request: HttpRequest, queryset: QuerySet[Execution]) -> None:
        release_now(request, list(queryset.values_list("pk", flat=True)))

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **options: Any) -> Any:
        execution = options["obj"]
        execution.has_jobs = Execution.objects.filter(has_jobs(), pk=execution.pk).exists()
        context["where_url"] = admin_url("harbor_executions_execution_place", execution.pk)
        if execution.has_jobs:
            context["its_jobs_url"] = list_url("tasks_job", **{JOB_EXECUTION_PARAMETER: execution.pk})
            context["running_url"] = admin_url("harbor_executions_execution_running", execution.pk)
        return super().render_change_form(request, context, *args, **options)

    def place(self, request: HttpRequest, object_id: str) -> dict[str, Any]:
        """Where it is: on the queue, claimed by a node, or in neither; and what ends that. It is loaded after the
        page, because it asks Redis, which may hang."""
        context: dict[str, Any] = {}
        try:
            context["found"] = diagnose(parse_id(object_id) or 0)
        except QueueUnavailable as exc:
            context["error"] = f"Redis is away, so this is unknown. {exc}"
        return {"parts": {"place": render_to_string("tasks/admin/execution_place.html", context)}}

    def running(self, request: HttpRequest, object_id: str) -> dict[str, Any]:
        """Its jobs that run now, and what each said last, and which jobs need which, loaded after the page."""
        execution_id = parse_id(object_id) or 0
        found = running_jobs(execution_id, MOST_RUNNING)
        rows = [
            [task_link(one.task_id), one.name, check_in_bar(one, with_message=True), heard_at(one)]
            for one in found
        ]
        more = "" if len(found) < MOST_RUNNING else f", the first {MOST_RUNNING}"
        context = {
            "graph": drawn(execution_id),
            "table": table(f"Jobs that run now{more}", ["Task", "Job", "Progress", "Last heard of"], rows),
            "totals": bulk.totals_of(execution_id),
        }
        return {"parts": {"running": render_to_string("tasks/admin/running_jobs.html", context)}}
