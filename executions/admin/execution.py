"""The screen of executions: the list, and the page of one, which executions/admin/execution_page.py fills."""

from typing import Any

from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.safestring import SafeString

from harbor_refresh.executions.admin.base import ReadOnlyAdmin
from harbor_refresh.executions.admin.execution_page import panel_context, progress_of, sections_context
from harbor_refresh.executions.admin.filters import (
    STARTED_PARAMETER,
    QuarantinedFilter,
    StartedFilter,
    StatusFilter,
    TriggerFilter,
    VendorFilter,
    VendorIdFilter,
)
from harbor_refresh.executions.admin.formatters import (
    elapsed,
    is_quarantined,
    label,
    moment,
    moment_in_column,
    name_in_column,
    status_bar,
    status_label,
    task_labels,
)
from harbor_refresh.executions.admin.page_parts import (
    EXECUTION_MEANINGS,
    CountedChangeList,
    counts_of,
    fragment,
    legend_context,
)
from harbor_refresh.executions.admin.search import executions_matching, parse_id
from harbor_refresh.executions.admin.site_pages import admin_url, page
from harbor_refresh.executions.admin.status_change import HistoryInline
from harbor_refresh.executions.admin.unfold_api import display
from harbor_refresh.executions.attached.ownership import page_context
from harbor_refresh.executions.errors import NoSuchExecution
from harbor_refresh.executions.models import Execution
from harbor_refresh.executions.text import storable


@page(Execution)
class ExecutionAdmin(ReadOnlyAdmin):
    list_display = ("number", "shown_status", "vendor", "progress", "started", "duration")
    list_filter = (
        VendorFilter,
        VendorIdFilter,
        ("start_time", StartedFilter),
        QuarantinedFilter,
        StatusFilter,
        TriggerFilter,
    )
    list_filter_submit = True
    list_select_related = ("quarantine",)
    list_before_template = "executions/admin/execution_list_head.html"
    change_form_outer_before_template = "executions/admin/execution_panel.html"
    change_form_outer_after_template = "executions/admin/execution_sections.html"
    #: The index execution_started serves the order of the starts.
    sortable_by = ("started",)
    search_fields = ("pk",)
    search_help_text = (
        "Execution id, vendor, vendor id that is text, job id, or path=value of the attributes "
        "(repository.name=library/app)"
    )
    fieldsets = (
        (
            None,
            {
                "fields": (
                    ("vendor_type", "vendor_object"),
                    ("trigger", "revision"),
                    "status_message",
                    "attributes",
                )
            },
        ),
        ("Times", {"fields": (("started", "ended"), ("duration", "updated"))}),
    )
    large = ("extra_attrs",)
    readonly_fields = ("vendor_object", "attributes", "started", "ended", "duration", "updated")
    inlines = (HistoryInline,)

    def get_urls(self) -> list[URLPattern]:
        panel = path(
            "<path:object_id>/panel/", fragment(self, self.panel), name="harbor_executions_execution_panel"
        )
        return [panel, *super().get_urls()]

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[CountedChangeList]:
        return CountedChangeList

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        """Between two dates, show the latest starts first, which is the order of the index that finds them."""
        dated = any(request.GET.get(f"{STARTED_PARAMETER}_{side}_0") for side in ("from", "to"))
        return ("-start_time", "-pk") if dated else ("-pk",)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        context = {**(extra_context or {}), **legend_context(request, EXECUTION_MEANINGS), **page_context()}
        return super().changelist_view(request, context)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        context = {**(extra_context or {}), **page_context()}
        execution = self.get_object(request, object_id) if request.method == "GET" else None
        if execution is not None and self.has_view_permission(request, execution):
            made = progress_of(request, execution.pk)
            context |= panel_context(execution, made) | sections_context(request, execution, made)
        return super().change_view(request, object_id, form_url, context)

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Execution | None:
        """Read the row once for a page, with its quarantine and the length of its history."""
        known: dict[int, Execution | None] = request.__dict__.setdefault("executions_of_the_page", {})
        pk = parse_id(str(object_id)) or 0
        if pk not in known:
            rows = (
                self.get_queryset(request)
                .select_related("quarantine", "text_key")
                .annotate(changes=Count("history"))
            )
            known[pk] = rows.filter(pk=pk).first()
        return known[pk]

    def panel(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """The part of the page that changes while the execution makes progress; 204 if it has not changed."""
        execution = self.get_object(request, object_id)
        if execution is None:
            raise NoSuchExecution(parse_id(object_id) or 0)
        context = panel_context(execution, progress_of(request, execution.pk))
        if context["seen"] == request.GET.get("seen"):
            return HttpResponse(status=204)
        return render(request, "executions/admin/execution_panel.html", context)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Execution], search_term: str
    ) -> tuple[QuerySet[Execution], bool]:
        if not storable(search_term):
            return queryset.none(), False
        return (queryset.filter(executions_matching(search_term, request)) if search_term else queryset), False

    @display(description="Execution")
    def number(self, execution: Execution) -> int:
        return execution.pk

    @display(description="Status")
    def shown_status(self, execution: Execution) -> SafeString:
        status = status_label(execution.status)
        if not is_quarantined(execution):
            return status
        url = admin_url("harbor_executions_quarantine_changelist") + f"?q={execution.pk}"
        held = label("Quarantined", "danger", href=url, title=execution.quarantine.reason)
        return format_html('<span class="inline-flex flex-wrap gap-1">{}{}</span>', status, held)

    @display(description="Vendor")
    def vendor(self, execution: Execution) -> SafeString:
        return name_in_column(execution.vendor_type)

    @display(description="Vendor id")
    def vendor_object(self, execution: Execution) -> str:
        return execution.vendor_key

    @display(description="Tasks")
    def progress(self, execution: Execution) -> SafeString | str:
        counts = counts_of(execution)
        if not counts:
            return "none"
        return format_html(
            '<div class="flex flex-col gap-1.5 py-1">{}{}</div>',
            status_bar(counts),
            task_labels(execution.pk, counts),
        )

    @display(description="Started", ordering="start_time")
    def started(self, execution: Execution) -> str | SafeString:
        return moment_in_column(execution.start_time)

    @display(description="Ended")
    def ended(self, execution: Execution) -> str | SafeString:
        return moment(execution.end_time)

    @display(description="Updated")
    def updated(self, execution: Execution) -> str | SafeString:
        return moment(execution.update_time)

    @display(description="Took")
    def duration(self, execution: Execution) -> str | SafeString:
        return elapsed(execution.start_time, execution.end_time)
