"""The screens of executions and of their history. execution_page.py fills the page of one execution."""

from typing import Any, ClassVar
from urllib.parse import urlencode

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, QueryDict
from django.template.loader import render_to_string
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.safestring import SafeString

from harbor_refresh.executions.admin.base import ReadOnlyAdmin
from harbor_refresh.executions.admin.execution_page import panel_context, sections_context
from harbor_refresh.executions.admin.filters import (
    STARTED_PARAMETER,
    QuarantinedFilter,
    StartedFilter,
    StatusFilter,
    TriggerFilter,
    VendorFilter,
    VendorIdFilter,
    filter_of,
)
from harbor_refresh.executions.admin.formatters import (
    column,
    elapsed,
    execution_link,
    held_label,
    name_in_column,
    status_bar,
    status_label,
    task_labels,
)
from harbor_refresh.executions.admin.live import live_view
from harbor_refresh.executions.admin.page_parts import (
    CountedChangeList,
    Counts,
    LegendAdmin,
)
from harbor_refresh.executions.admin.search import add_bound, parse_id
from harbor_refresh.executions.admin.site_pages import page
from harbor_refresh.executions.errors import NoSuchExecution, Refused
from harbor_refresh.executions.models import Execution, StatusChange
from harbor_refresh.executions.queries.listing import MOST, bounded
from harbor_refresh.executions.queries.progress import progress as progress_of
from harbor_refresh.executions.status import Status


@page(Execution)
class ExecutionAdmin(LegendAdmin):
    list_display = ("number", "shown_status", "vendor", "progress", "started", "duration")
    list_filter: ClassVar[tuple[Any, ...]] = (
        VendorFilter,
        VendorIdFilter,
        StartedFilter,
        QuarantinedFilter,
        StatusFilter,
        TriggerFilter,
    )
    list_head = "executions/admin/status_legend.html"
    form_head = "executions/admin/execution_head.html"
    form_tail = "executions/admin/execution_sections.html"
    #: The index execution_started serves the order of the starts.
    sortable_by = ("started",)
    search_fields = ("pk",)
    search_help_text = (
        "Execution id, vendor, vendor id that is text, job id, or one path=value of the attributes "
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
        context |= panel_context(options["obj"]) | sections_context(options["obj"])
        return super().render_change_form(request, context, *args, **options)

    def panel(self, request: HttpRequest, object_id: str) -> dict[str, Any]:
        execution = self.get_object(request, object_id)
        if execution is None:
            raise NoSuchExecution(parse_id(object_id) or 0)
        context = panel_context(execution)
        panel = render_to_string("executions/admin/execution_panel.html", context)
        return {"parts": {"panel": panel}, "every": context["panel_every"]}

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
        counts: Counts = execution.__dict__["task_counts"]
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
