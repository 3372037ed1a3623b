"""The screen of tasks: of all executions, newest first, or of one execution; and the page of errors."""

from typing import Any

from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.safestring import SafeString
from django.utils.text import Truncator

from harbor_refresh.executions.admin import error_groups
from harbor_refresh.executions.admin.base import ReadOnlyAdmin
from harbor_refresh.executions.admin.bounds import add_bound
from harbor_refresh.executions.admin.filters import newest_with
from harbor_refresh.executions.admin.formatters import elapsed, execution_link, moment, status_label
from harbor_refresh.executions.admin.page_parts import STATUS_PARAMETER, TASK_MEANINGS, legend_context
from harbor_refresh.executions.admin.search import among, parse_id
from harbor_refresh.executions.admin.site_pages import page
from harbor_refresh.executions.admin.unfold_api import display
from harbor_refresh.executions.attached.attachment import is_attached
from harbor_refresh.executions.attached.ownership import page_context
from harbor_refresh.executions.models import Task
from harbor_refresh.executions.queries.lookups import COMPARED, MOST
from harbor_refresh.executions.status import Status

TASK_EXECUTION_PARAMETER = "execution__id__exact"


class TaskStatusFilter(admin.SimpleListFilter):
    """The index task_by_status answers for all tasks, but for those that have succeeded: of these, the newest are
    compared, and so are all tasks of a running Harbor. Within one execution, the index task_rollup answers."""

    title = "status"
    parameter_name = STATUS_PARAMETER

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return list(Status.choices)

    def queryset(self, request: HttpRequest, queryset: QuerySet[Task]) -> QuerySet[Task]:
        status = self.value()
        if not status:
            return queryset
        if status not in Status.values:
            raise IncorrectLookupParameters(f"no status is called {status!r}")
        has_index = status != Status.SUCCESS and not is_attached()
        if not has_index and TASK_EXECUTION_PARAMETER not in request.GET:
            add_bound(request, f"{status}: of the newest {COMPARED:,} tasks, {MOST:,} at most.")
            return queryset.filter(among(newest_with(queryset, "status", status)))
        return queryset.filter(status=status)


@page(Task)
class TaskAdmin(ReadOnlyAdmin):
    list_display = (
        "id",
        "execution_number",
        "shown_status",
        "vendor_type",
        "job_id",
        "runs",
        "started",
        "duration",
        "short_message",
    )
    list_filter = (TaskStatusFilter,)
    lookups_of_links = (TASK_EXECUTION_PARAMETER,)
    fieldsets = (
        (
            None,
            {
                "fields": (
                    ("shown_status", "execution_number"),
                    ("vendor_type", "job_id"),
                    ("status_revision", "runs"),
                    "status_message",
                    "attributes",
                )
            },
        ),
        ("Times", {"fields": (("created", "updated"), ("started", "ended"), "duration")}),
    )
    large = ("extra_attrs",)
    readonly_fields = (
        "attributes",
        "shown_status",
        "execution_number",
        "runs",
        "created",
        "updated",
        "started",
        "ended",
        "duration",
    )
    search_fields = ("job_id",)
    search_help_text = "Task id or job id"
    list_before_template = "executions/admin/task_list_head.html"
    change_form_outer_before_template = "executions/admin/harbors_note.html"

    def get_urls(self) -> list[URLPattern]:
        errors = path("errors/", self.admin_site.admin_view(self.errors), name="harbor_executions_task_errors")
        return [errors, *super().get_urls()]

    def errors(self, request: HttpRequest) -> HttpResponse:
        """The page of errors: by message, by vendor and by hour."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        context = {
            **self.admin_site.each_context(request),
            **error_groups.page_context(request),
        }
        return TemplateResponse(request, "executions/admin/errors.html", context)

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        """Within one execution, show unfinished tasks first, which is the order of the index task_rollup. By
        status, show those of the newest executions first, which is the order of the index task_by_status."""
        if TASK_EXECUTION_PARAMETER in request.GET:
            return ("status_code", "-pk")
        return ("-execution_id", "-pk") if request.GET.get(STATUS_PARAMETER) else ("-pk",)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        context = {**(extra_context or {}), **legend_context(request, TASK_MEANINGS), **page_context()}
        if found := parse_id(request.GET.get(TASK_EXECUTION_PARAMETER, "")):
            context |= {"execution_link": execution_link(found)}
        return super().changelist_view(request, context)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        return super().change_view(request, object_id, form_url, {**(extra_context or {}), **page_context()})

    def matching(self, rows: QuerySet[Task], text: str) -> QuerySet[Task]:
        for word in text.split():
            found = parse_id(word)
            same_id = Q() if found is None else Q(pk=found)
            rows = rows.filter(Q(job_id=word) | same_id)
        return rows

    @display(description="Execution")
    def execution_number(self, task: Task) -> SafeString:
        return execution_link(task.execution_id)

    @display(description="Status")
    def shown_status(self, task: Task) -> SafeString:
        return status_label(task.status)

    @display(description="Earlier runs")
    def runs(self, task: Task) -> int:
        return task.run_count

    @display(description="Created")
    def created(self, task: Task) -> str | SafeString:
        return moment(task.creation_time)

    @display(description="Updated")
    def updated(self, task: Task) -> str | SafeString:
        return moment(task.update_time)

    @display(description="Started")
    def started(self, task: Task) -> str | SafeString:
        return moment(task.start_time)

    @display(description="Ended")
    def ended(self, task: Task) -> str | SafeString:
        return moment(task.end_time)

    @display(description="Took")
    def duration(self, task: Task) -> str | SafeString:
        return elapsed(task.start_time, task.end_time)

    @display(description="Message")
    def short_message(self, task: Task) -> str:
        return Truncator(task.status_message).chars(80)
