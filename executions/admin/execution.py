"""The screens of executions and of their history.

The page of one execution has a panel, which follows it live, and sections with its tasks, its errors and its
deliveries. Every part reads a bounded number of rows.
"""

from typing import Any, ClassVar
from urllib.parse import urlencode

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, QueryDict
from django.template.loader import render_to_string
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import Truncator

from harbor_refresh.executions.admin.base import CappedChangeList, ReadOnlyAdmin
from harbor_refresh.executions.admin.filters import (
    STARTED_PARAMETER,
    HasJobsFilter,
    QuarantinedFilter,
    StartedFilter,
    StatusFilter,
    TriggerFilter,
    VendorFilter,
    VendorIdFilter,
    add_bound,
    filter_of,
    parse_id,
)
from harbor_refresh.executions.admin.formatters import (
    column,
    delivery_label,
    elapsed,
    execution_link,
    held_label,
    link,
    list_url,
    moment,
    name_in_column,
    status_bar,
    status_label,
    table,
    task_labels,
    task_link,
    tasks_url,
)
from harbor_refresh.executions.admin.live import live_view
from harbor_refresh.executions.admin.page_parts import LegendAdmin, task_counts
from harbor_refresh.executions.admin.site_pages import admin_url, page
from harbor_refresh.executions.admin.task import error_table
from harbor_refresh.executions.durations import duration
from harbor_refresh.executions.errors import NoSuchExecution, Refused
from harbor_refresh.executions.models import Delivery, Execution, StatusChange, Subscription, Task
from harbor_refresh.executions.queries.error_groups import group_errors
from harbor_refresh.executions.queries.listing import MOST, bounded
from harbor_refresh.executions.queries.progress import Progress
from harbor_refresh.executions.queries.progress import progress as progress_of
from harbor_refresh.executions.status import Status, is_final

CHANGES, TASKS, DELIVERIES, MAX_SUBSCRIPTIONS = 6, 20, 10, 1_000
#: Milliseconds between two questions of an open page. An ended execution may be tried again.
WHILE_GOING_MS, AFTER_THE_END_MS = 2_000, 15_000


class CountedChangeList(CappedChangeList):
    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.result_list = list(self.result_list)
        counts = task_counts(execution.pk for execution in self.result_list)
        for execution in self.result_list:
            execution.__dict__["task_counts"] = counts.get(execution.pk, {})


class ExecutionAdmin(LegendAdmin):
    """Without what needs the queue or jobs, which tasks/admin adds."""

    list_display = ("number", "shown_status", "vendor", "progress", "started", "duration")
    list_filter = (
        VendorFilter,
        VendorIdFilter,
        StartedFilter,
        QuarantinedFilter,
        StatusFilter,
        TriggerFilter,
        HasJobsFilter,
    )
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

    def get_urls(self) -> list[URLPattern]:
        panel = path(
            "<path:object_id>/panel/", live_view(self, self.panel), name="harbor_executions_execution_panel"
        )
        return [panel, *super().get_urls()]

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        """Between two dates, show the latest starts first, which is the order of the index that finds them."""
        dated = any(request.GET.get(f"{STARTED_PARAMETER}_{side}_0") for side in ("from", "to"))
        return ("-start_time", "-pk") if dated else ("-pk",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Execution]:
        return super().get_queryset(request).select_related("quarantine", "text_key")

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        execution = super().get_object(request, object_id, from_field)
        if execution is not None and self.has_view_permission(request, execution):  # it reads each task
            execution.made = progress_of(execution.pk)
        return execution

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **options: Any) -> Any:
        execution = options["obj"]
        context |= {
            "panel_url": admin_url("harbor_executions_execution_panel", execution.pk),
            "panel": _panel(execution),
            "panel_every": _panel_every(execution),
            "its_tasks": _tasks(execution),
            "its_errors": _errors(execution),
            "its_deliveries": _deliveries(execution),
        }
        return super().render_change_form(request, context, *args, **options)

    def panel(self, request: HttpRequest, object_id: str) -> dict[str, Any]:
        execution = self.get_object(request, object_id)
        if execution is None:
            raise NoSuchExecution(parse_id(object_id) or 0)
        return {"parts": {"panel": _panel(execution)}, "every": _panel_every(execution)}

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

    @admin.display(description="Status")
    def shown_status(self, execution: Execution) -> SafeString:
        status, held = status_label(execution.status), held_label(execution)
        return (
            format_html('<span class="inline-flex flex-wrap gap-1">{}{}</span>', status, held) if held else status
        )

    @admin.display(description="Tasks")
    def progress(self, execution: Execution) -> SafeString | str:
        counts = execution.__dict__["task_counts"]
        if not counts:
            return "none"
        return format_html(
            '<div class="flex flex-col gap-1.5 py-1">{}{}</div>',
            status_bar(counts),
            task_labels(execution.pk, counts),
        )

    duration = column(lambda execution: elapsed(execution.start_time, execution.end_time), "Took")
    number = column("pk", "Execution", int)
    vendor = column("vendor_type", "Vendor", name_in_column)
    vendor_object = column(lambda execution: execution.vendor_key, "Vendor id")
    started = column("start_time", "Started", ordering="start_time")
    ended = column("end_time", "Ended")
    updated = column("update_time", "Updated")


def _panel_every(execution: Execution) -> int:
    return AFTER_THE_END_MS if is_final(execution.status) else WHILE_GOING_MS


def _panel(execution: Any) -> str:
    """What changes while the execution makes progress. The time that it takes comes after its end: before, each
    answer would differ from the last one."""
    made, quarantine = execution.made, getattr(execution, "quarantine", None)
    context = {
        "made": made,
        "status": status_label(execution.status),
        "held": held_label(execution),
        "text": _text(made),
        "took": elapsed(execution.start_time, execution.end_time) if is_final(execution.status) else "",
        "bar": status_bar(made.counts),
        "counts": task_labels(execution.pk, made.counts),
        "tasks_url": tasks_url(execution.pk),
        "changes": _changes(execution),
        "history_url": list_url("executions_statuschange", q=execution.pk),
        "quarantine": quarantine,
        "quarantined_at": moment(quarantine.at) if quarantine else "",
        "quarantine_url": list_url("executions_quarantine", q=execution.pk),
    }
    return render_to_string("executions/admin/execution_panel.html", context)


def _text(made: Progress) -> str:
    if not made.total:
        return "It has no tasks: its status is set by hand."
    tasks = "task has" if made.total == 1 else "tasks have"
    text = f"{made.done:,} of {made.total:,} {tasks} ended"
    if failed := made.counts.get(Status.ERROR):
        text += f", {failed:,} with an error"
    if stopped := made.counts.get(Status.STOPPED):
        text += f", {stopped:,} stopped"
    left = f" About {duration(round(made.eta.total_seconds()))} left." if made.eta else ""
    return f"{text}.{left}"


def _changes(execution: Execution) -> list[dict[str, Any]]:
    """The last changes of its status, the newest first, and how long each status lasted."""
    rows = list(StatusChange.objects.filter(execution_id=execution.pk).order_by("-revision")[:CHANGES])
    until = [None if not is_final(execution.status) else rows[0].at if rows else None, *(row.at for row in rows)]
    return [
        {
            "when": moment(row.at),
            "was": status_label(row.from_status),
            "became": status_label(row.to_status),
            "lasted": "" if index == 0 else elapsed(row.at, until[index]),
        }
        for index, row in enumerate(rows)
    ]


def _errors(execution: Any) -> dict[str, Any] | None:
    if not execution.made.counts.get(Status.ERROR):
        return None
    found = group_errors(execution_id=execution.pk).messages
    return error_table("Errors by message", "Message", found, with_execution=False) if found else None


def _tasks(execution: Execution) -> dict[str, Any]:
    """Its first tasks, unfinished ones first, which is the order of the index task_rollup."""
    rows = Task.objects.defer("extra_attrs").filter(execution_id=execution.pk).order_by("status_code", "-pk")
    cells = (
        [
            task_link(task.pk),
            status_label(task.status),
            task.job_id or "-",
            moment(task.start_time),
            elapsed(task.start_time, task.end_time),
            Truncator(task.status_message).chars(80),
        ]
        for task in rows[:TASKS]
    )
    headers = ["Task", "Status", "Job id", "Started", "Took", "Message"]
    footer = link(tasks_url(execution.pk), "All its tasks")
    return table("Its tasks, unfinished ones first", headers, cells, footer=footer)


def _deliveries(execution: Execution) -> dict[str, Any] | None:
    """Its last deliveries; None if there are none. The index begins with the subscription, so each is asked."""
    subscriptions = Subscription.objects.values("pk")[:MAX_SUBSCRIPTIONS]
    rows = Delivery.objects.filter(subscription_id__in=subscriptions, execution_id=execution.pk)
    cells = [
        [
            row.subscription.name,
            f"{row.from_status} → {row.to_status}, revision {row.revision}",
            delivery_label(row.state),
            row.attempts,
            Truncator(row.last_error).chars(80) or "-",
        ]
        for row in rows.select_related("subscription").order_by("-revision", "-pk")[:DELIVERIES]
    ]
    headers = ["Subscription", "Change", "State", "Attempts", "Last error"]
    footer = link(list_url("executions_delivery", q=execution.pk), "All its deliveries")
    return table("Its last deliveries", headers, cells, footer=footer) if cells else None


@page(StatusChange)
class StatusChangeAdmin(ReadOnlyAdmin):
    list_display = ("id", "execution_number", "revision", "was", "became", "when")
    fields = ("execution_number", "revision", "was", "became", "when")
    search_fields = ("execution_id",)
    search_help_text = "Execution id"

    execution_number = column("execution_id", "Execution", execution_link)
    was = column("from_status", "From", status_label)
    became = column("to_status", "To", status_label)
    when = column("at", "When")
