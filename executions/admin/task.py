"""The screen of tasks: of all executions, newest first, or of one execution."""

from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.safestring import SafeString
from django.utils.text import Truncator

from executions.admin.base import ReadOnlyAdmin
from executions.admin.formatters import elapsed, execution_link, moment, status_label
from executions.admin.search import parse_id
from executions.admin.status_legend import TASK_MEANINGS, legend_context
from executions.admin.unfold_api import display
from executions.models import Task

TASK_EXECUTION_PARAMETER = "execution__id__exact"


@admin.register(Task)
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
    fieldsets = (
        (
            None,
            {
                "fields": (
                    ("shown_status", "execution_number"),
                    ("vendor_type", "job_id"),
                    ("status_revision", "run_count"),
                    "status_message",
                    "extra_attrs",
                )
            },
        ),
        ("Times", {"fields": (("created", "updated"), ("started", "ended"), "duration")}),
    )
    readonly_fields = (
        "shown_status",
        "execution_number",
        "created",
        "updated",
        "started",
        "ended",
        "duration",
    )
    search_fields = ("job_id",)
    search_help_text = "Task id or job id"
    list_before_template = "executions/admin/task_list_head.html"

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        """Within one execution, show unfinished tasks first, which is the order of the index task_rollup."""
        return ("status_code", "-pk") if TASK_EXECUTION_PARAMETER in request.GET else ("-pk",)

    def get_list_filter(self, request: HttpRequest) -> tuple[str, ...]:
        """Filter by status within one execution only, because no index answers that for all tasks."""
        return ("status",) if TASK_EXECUTION_PARAMETER in request.GET else ()

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        context = dict(extra_context or {})
        if found := parse_id(request.GET.get(TASK_EXECUTION_PARAMETER, "")):
            context |= legend_context(request, TASK_MEANINGS)
            context |= {"execution_link": execution_link(found)}
        return super().changelist_view(request, context)

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

    @display(description="Runs")
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
