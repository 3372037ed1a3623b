"""The screen of executions. The list and the page of one have the same actions, and each asks first."""

from typing import Any, ClassVar
from urllib.parse import urlencode

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, QueryDict
from django.template.loader import render_to_string
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.safestring import SafeString

from harbor_refresh.executions.admin.base import may
from harbor_refresh.executions.admin.execution_page import first_tasks, panel
from harbor_refresh.executions.admin.filters import FILTERS, STARTED_PARAMETER, add_bound, filter_of, parse_id
from harbor_refresh.executions.admin.formatters import (
    column,
    execution_link,
    held_label,
    name_in_column,
    once,
    status_bar,
    status_label,
    table,
    task_labels,
    task_link,
)
from harbor_refresh.executions.admin.lists import MORE_TASKS, CappedChangeList, LegendAdmin, with_task_counts
from harbor_refresh.executions.admin.site_pages import live_view, page
from harbor_refresh.executions.errors import NoSuchExecution, QueueUnavailable, Refused
from harbor_refresh.executions.models import Execution
from harbor_refresh.executions.news.audit import Word
from harbor_refresh.executions.queries.filters import has_jobs
from harbor_refresh.executions.queries.listing import MOST, bounded
from harbor_refresh.executions.queries.progress import progress as progress_of
from harbor_refresh.executions.status import Status, is_final
from harbor_refresh.tasks.admin.execution_actions import (
    execution_action,
    may_run_again,
    may_unless_harbors,
    may_view_jobs,
)
from harbor_refresh.tasks.admin.job_formatters import check_in_bar, drawn, job_name, last_heard, with_jobs
from harbor_refresh.tasks.jobs.queries import running_jobs
from harbor_refresh.tasks.jobs.terms import described
from harbor_refresh.tasks.operations import bulk
from harbor_refresh.tasks.pipeline.diagnosis import diagnose

#: So many running jobs are shown on the page of an execution.
MOST_RUNNING = 20


class CountedChangeList(CappedChangeList):
    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.result_list = with_task_counts(self.result_list)


its_terms = once("its_terms", described)


@page(Execution)
class ExecutionAdmin(LegendAdmin):
    list_display = ("number", "shown_status", "vendor", "progress", "started", "duration")
    list_filter = FILTERS
    form_head = "executions/admin/execution_head.html"
    form_tail = "executions/admin/execution_sections.html"
    #: The index execution_started serves the order of the starts.
    sortable_by = ("started",)
    search_fields = ("pk",)
    search_help_text = (
        "Execution id, vendor, vendor id that is text, job id, or one path=value of the attributes "
        "(repository.name=library/app)"
    )
    its_fields = (("vendor_type", "vendor_object"), ("trigger", "revision"), "status_message", "attributes")
    its_times = (("started", "ended"), ("duration", "updated"))
    fieldsets = ((None, {"fields": its_fields}), ("Times", {"fields": its_times}))
    large = ("extra_attrs",)
    changelist = CountedChangeList
    meanings: ClassVar[dict[Status, str]] = {
        Status.RUNNING: "a task is not finished",
        Status.ERROR: "all finished, a task failed",
        Status.STOPPED: "none failed, a task was stopped",
        Status.SUCCESS: "every task succeeded",
    }
    actions = page_actions = ("refresh", "release", "stop", "retry", "resume", "remove")
    acts_on_all = True
    has_run_permission = may_unless_harbors("harbor_executions.change_execution")
    has_remove_permission = may_unless_harbors("harbor_executions.delete_execution")
    has_release_permission = may("harbor_executions.change_quarantine")

    def get_urls(self) -> list[URLPattern]:
        parts = {"panel": self.panel, "place": self.place, "running": self.running}
        live = [
            path(f"<path:object_id>/{name}/", live_view(self.may_follow, part), name=f"{self.url_name}_{name}")
            for name, part in parts.items()
        ]
        return [*live, *super().get_urls()]

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        """Between two dates, show the latest starts first, which is the order of the index that finds them."""
        dated = any(request.GET.get(f"{STARTED_PARAMETER}_{side}_0") for side in ("from", "to"))
        return ("-start_time", "-pk") if dated else ("-pk",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Execution]:
        return super().get_queryset(request).select_related("quarantine", "text_key", "link_to_parent")

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        execution = super().get_object(request, object_id, from_field)
        if execution is not None and self.has_view_permission(request, execution):  # it reads each task
            try:
                execution.made = progress_of(execution.pk)
            except NoSuchExecution:  # it was deleted at this moment
                return None
        return execution

    def get_fieldsets(self, request: HttpRequest, obj: Execution | None = None) -> Any:
        (title, options), *others = super().get_fieldsets(request, obj)
        parent = ("parent_of_it",) if hasattr(obj, "link_to_parent") else ()
        terms = ("terms_of_it",) if obj and its_terms(obj) else ()
        return [(title, {**options, "fields": (*parent, *options["fields"], *terms)}), *others]

    def useful(self, request: HttpRequest, row: Any) -> dict[str, bool]:
        """A quarantined execution is released, and not refreshed."""
        again = row.made.counts if row.has_jobs and may_run_again(request, row) else {}
        has_ended, is_held = is_final(row.status), hasattr(row, "quarantine")
        return {
            "refresh": not is_held,
            "release": is_held,
            "stop": not has_ended,
            "retry": bool(again.get(Status.ERROR)),
            "resume": bool(again.get(Status.STOPPED)),
            "remove": has_ended,
        }

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **options: Any) -> Any:
        execution = options["obj"]
        execution.has_jobs = Execution.objects.filter(has_jobs(), pk=execution.pk).exists()
        context["shows_jobs"] = shown = execution.has_jobs and may_view_jobs(request)
        tasks = with_jobs(execution.tasks.all(), shown=shown)
        context |= {"panel": panel(execution), "its_tasks": first_tasks(execution, tasks, job_name)}
        return super().render_change_form(request, context, *args, **options)

    def panel(self, request: HttpRequest, object_id: str) -> dict[str, Any]:
        execution = self.get_object(request, object_id)
        if execution is None:
            raise NoSuchExecution(parse_id(object_id) or 0)
        return panel(execution)

    def place(self, request: HttpRequest, object_id: str) -> dict[str, Any]:
        """Where it is: on the queue, claimed by a node, or in neither; and what ends that. It is loaded after the
        page, because it asks Redis, which may hang."""
        try:
            findings = diagnose(parse_id(object_id) or 0).findings
        except QueueUnavailable as exc:
            findings = (f"Redis is down, so this is unknown. {exc}",)
        return {"parts": {"place": render_to_string("tasks/admin/execution_place.html", {"findings": findings})}}

    def running(self, request: HttpRequest, object_id: str) -> dict[str, Any]:
        """Its jobs that run now, and what each said last, and which jobs need which, loaded after the page."""
        if not may_view_jobs(request):
            raise PermissionDenied
        execution_id = parse_id(object_id) or 0
        found = running_jobs(execution_id, MOST_RUNNING)
        rows = [[task_link(one.task_id), one.name, check_in_bar(one), last_heard(one)] for one in found]
        more = "" if len(found) < MOST_RUNNING else f", the first {MOST_RUNNING}"
        context = {
            "graph": drawn(execution_id),
            "table": table(f"Jobs that run now{more}", ["Task", "Job", "Progress", "Last heard of"], rows),
            "totals": bulk.totals_of(execution_id),
        }
        return {"parts": {"running": render_to_string("tasks/admin/running_jobs.html", context)}}

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Execution], search_term: str
    ) -> tuple[QuerySet[Execution], bool]:
        """All parameters of the list narrow it at once. A page that completes an id has its term alone."""
        query = request.GET if "term" not in request.GET else QueryDict(urlencode({"q": search_term}))
        try:
            rows, compared = bounded(filter_of(query), queryset)
        except Refused as exc:
            add_bound(request, f"Nothing is listed: {exc}.")
            return queryset.none(), False
        if compared is not None:
            add_bound(request, f"Of the newest {compared:,} executions, {MOST:,} at most.")
        return rows, False

    refresh = execution_action(
        Word.REFRESH,
        "Refresh now",
        "Refresh {} now",
        "Brings each status to what the tasks say, without the queue. Executions in quarantine stay there.",
    )
    stop = execution_action(
        Word.STOP,
        "Stop",
        "Stop {}",
        "Unfinished tasks become Stopped. Waiting jobs do not begin any more, running jobs are asked to stop. "
        "Executions that have ended stay as they are.",
    )
    retry = execution_action(
        Word.RETRY,
        "Retry failed jobs",
        "Retry the failed jobs of {}",
        "Each failed job runs once more, and so do the jobs of its chain that were stopped because of it. "
        "Executions without failed jobs stay as they are.",
    )
    resume = execution_action(
        Word.RESUME,
        "Resume stopped jobs",
        "Resume {}",
        "Each job that was stopped runs once more. Jobs that were stopped because a job before them failed "
        "wait for a retry of that job. Executions without stopped jobs stay as they are.",
    )
    remove = execution_action(
        Word.DELETE,
        "Delete",
        "Delete {}",
        "Tasks, jobs and history are deleted with them, for good. Executions that have not ended are not "
        "deleted: stop them first.",
    )
    release = execution_action(
        Word.RELEASE,
        "Release from quarantine",
        "Release {} from quarantine",
        "Workers leave executions alone whose refresh failed too often. A release puts them on the queue for "
        "another try, as a report does. Executions that are not in quarantine stay as they are.",
    )

    @admin.display(description="Status")
    def shown_status(self, execution: Execution) -> SafeString:
        status, held = status_label(execution.status), held_label(execution)
        return format_html('<span class="inline-flex flex-wrap gap-1">{}{}</span>', status, held)

    @admin.display(description="Tasks")
    def progress(self, execution: Execution) -> SafeString | str:
        counts = execution.__dict__["task_counts"]
        if not counts:
            return MORE_TASKS if counts is None else "none"
        return format_html(
            '<div class="flex flex-col gap-1.5 py-1">{}{}</div>',
            status_bar(counts),
            task_labels(execution.pk, counts),
        )

    number = column("pk", "Execution", int)
    vendor = column("vendor_type", "Vendor", name_in_column)
    vendor_object = column(lambda execution: execution.vendor_key, "Vendor id")
    started = column("start_time", "Started", ordering="start_time")
    parent_of_it = column("link_to_parent.parent_id", "Parent", execution_link)
    terms_of_it = column(its_terms, "Terms")
