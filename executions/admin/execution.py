"""The screen of executions: their status, the status of their tasks, their history."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from executions.admin.base import ReadOnlyAdmin
from executions.admin.formatters import (
    elapsed,
    is_quarantined,
    label,
    moment,
    status_label,
    task_labels,
    tasks_url,
)
from executions.admin.search import executions_matching, vendors
from executions.admin.status_change import HistoryInline
from executions.admin.status_legend import EXECUTION_MEANINGS, legend_context
from executions.admin.task_counts import CountedChangeList, counts_of
from executions.admin.unfold_api import display
from executions.models import Execution


class VendorFilter(admin.SimpleListFilter):
    title = "vendor"
    parameter_name = "vendor"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(vendor, vendor) for vendor in vendors()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Execution]) -> QuerySet[Execution]:
        return queryset.filter(vendor_type=self.value()) if self.value() else queryset


@admin.register(Execution)
class ExecutionAdmin(ReadOnlyAdmin):
    list_display = (
        "number",
        "shown_status",
        "vendor_type",
        "tasks",
        "started",
        "duration",
    )
    list_filter = (VendorFilter, "status")
    list_select_related = ("quarantine",)
    list_before_template = "executions/admin/execution_list_head.html"
    search_fields = ("pk",)
    search_help_text = "Execution id, vendor or job id"
    fieldsets = (
        (
            None,
            {
                "fields": (
                    ("shown_status", "revision"),
                    "all_tasks",
                    ("vendor_type", "vendor_id"),
                    "trigger",
                    "status_message",
                    "extra_attrs",
                )
            },
        ),
        ("Times", {"fields": (("started", "ended"), ("duration", "updated"))}),
    )
    readonly_fields = ("shown_status", "all_tasks", "started", "ended", "duration", "updated")
    inlines = (HistoryInline,)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[CountedChangeList]:
        return CountedChangeList

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        context = {**(extra_context or {}), **legend_context(request, EXECUTION_MEANINGS)}
        return super().changelist_view(request, context)

    def matching(self, rows: QuerySet[Execution], text: str) -> QuerySet[Execution]:
        return rows.filter(executions_matching(text))

    @display(description="Execution")
    def number(self, execution: Execution) -> int:
        return execution.pk

    @display(description="Status")
    def shown_status(self, execution: Execution) -> SafeString:
        status = status_label(execution.status)
        if not is_quarantined(execution):
            return status
        url = reverse("admin:harbor_executions_quarantine_changelist") + f"?q={execution.pk}"
        held = label("Quarantined", "danger", href=url, title=execution.quarantine.reason)
        return format_html('<span class="inline-flex gap-1">{}{}</span>', status, held)

    @display(description="Tasks")
    def tasks(self, execution: Execution) -> SafeString | str:
        counts = counts_of(execution)
        return task_labels(execution.pk, counts) if counts else "none"

    @display(description="Tasks")
    def all_tasks(self, execution: Execution) -> SafeString | str:
        counts = counts_of(execution)
        if not counts:
            return "None: its status is set by hand."
        return format_html(
            '{} <a href="{}" class="text-link ml-2">All {} tasks</a>',
            task_labels(execution.pk, counts),
            tasks_url(execution.pk),
            f"{sum(counts.values()):,}",
        )

    @display(description="Started")
    def started(self, execution: Execution) -> str | SafeString:
        return moment(execution.start_time)

    @display(description="Ended")
    def ended(self, execution: Execution) -> str | SafeString:
        return moment(execution.end_time)

    @display(description="Updated")
    def updated(self, execution: Execution) -> str | SafeString:
        return moment(execution.update_time)

    @display(description="Took")
    def duration(self, execution: Execution) -> str | SafeString:
        return elapsed(execution.start_time, execution.end_time)
