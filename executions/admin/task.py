"""The screen of tasks, of all executions or of one; and the page of errors by message, vendor and hour."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.text import Truncator

from harbor_refresh.executions.admin.filters import StatusFilter, add_bound
from harbor_refresh.executions.admin.formatters import (
    STATUS_PARAMETER,
    column,
    elapsed,
    execution_link,
    moment,
    status_label,
    table,
    task_link,
)
from harbor_refresh.executions.admin.page_parts import LegendAdmin
from harbor_refresh.executions.attached.attachment import is_attached
from harbor_refresh.executions.models import Task
from harbor_refresh.executions.queries.error_groups import COMPARED, Group, group_errors
from harbor_refresh.executions.queries.listing import NEWEST, lowest_of_the_newest
from harbor_refresh.executions.status import Status

TASK_EXECUTION_PARAMETER = "execution__id__exact"
#: The choices of the page of errors, and what each means in hours.
SINCE = {"hour": ("Last hour", 1), "day": ("Last day", 24), "week": ("Last week", 168), "": ("All", None)}


def error_table(title: str, by: str, groups: Sequence[Group], *, with_execution: bool = True) -> dict[str, Any]:
    def cells(one: Group) -> list[Any]:
        known = moment(one.key) if isinstance(one.key, datetime) else Truncator(one.key).chars(160)
        last = moment(one.last_end), task_link(one.task_id), execution_link(one.execution_id)
        return [known or "(no message)", f"{one.count:,}", *last]

    headers, columns = [by, "Errors", "Last", "Newest task", "Execution"], 5 if with_execution else 4
    return table(title, headers[:columns], (cells(one)[:columns] for one in groups))


class TaskStatusFilter(StatusFilter):
    """The index task_by_status answers for all tasks, but for those that have succeeded: of these, the newest are
    compared, and so are all tasks of a running Harbor. Within one execution, the index task_rollup answers."""

    def having(self, request: HttpRequest, queryset: QuerySet[Task], status: str) -> QuerySet[Task]:
        has_index = status != Status.SUCCESS and not is_attached()
        if not has_index and TASK_EXECUTION_PARAMETER not in request.GET:
            add_bound(request, f"{status}: of the newest {NEWEST:,} tasks.")
            queryset = queryset.filter(pk__gte=lowest_of_the_newest(queryset, NEWEST) or 0)
        return queryset.filter(status=status)


class TaskAdmin(LegendAdmin):
    """Without the job of a task, which tasks/admin adds."""

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
    its_fields = (
        ("shown_status", "execution_number"),
        ("vendor_type", "job_id"),
        ("status_revision", "runs"),
        "status_message",
        "attributes",
    )
    its_times = (("created", "updated"), ("started", "ended"), "duration")
    fieldsets = ((None, {"fields": its_fields}), ("Times", {"fields": its_times}))
    large = ("extra_attrs",)
    search_fields = ("pk", "job_id__exact")
    search_help_text = "Task id or job id"
    form_head = "executions/admin/harbors_note.html"

    def get_urls(self) -> list[URLPattern]:
        errors = path("errors/", self.admin_site.admin_view(self.errors), name="harbor_executions_task_errors")
        return [errors, *super().get_urls()]

    def errors(self, request: HttpRequest) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        chosen = request.GET.get("since", "day")
        hours = SINCE.get(chosen, SINCE["day"])[1]
        found = group_errors(since=timezone.now() - timedelta(hours=hours) if hours else None)
        tables = [
            error_table("By message", "Message", found.messages),
            error_table("By vendor", "Vendor", found.vendors),
            error_table("By hour of their end", "Hour", found.hours),
        ]
        return self.own_page(
            request,
            "executions/admin/errors.html",
            "Errors",
            choices=[(f"?since={name}", title, name == chosen) for name, (title, _) in SINCE.items()],
            bound=f"The errors of the newest {COMPARED:,} tasks that failed." if found.is_capped else "",
            tables=tables if found.messages else [],
        )

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        """Within one execution, show unfinished tasks first, which is the order of the index task_rollup. By
        status, show those of the newest executions first, which is the order of the index task_by_status."""
        if TASK_EXECUTION_PARAMETER in request.GET:
            return ("status_code", "-pk")
        return ("-execution_id", "-pk") if request.GET.get(STATUS_PARAMETER) else ("-pk",)

    duration = column(lambda task: elapsed(task.start_time, task.end_time), "Took")
    execution_number = column("execution_id", "Execution", execution_link)
    shown_status = column("status", "Status", status_label)
    runs = column(lambda task: task.run_count, "Earlier runs")
    created = column("creation_time", "Created")
    updated = column("update_time", "Updated")
    started = column("start_time", "Started")
    ended = column("end_time", "Ended")
    short_message = column("status_message", "Message", lambda text: Truncator(text).chars(80))
