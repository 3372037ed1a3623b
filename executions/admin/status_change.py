"""The history: one row for each revision of an execution."""

from typing import TYPE_CHECKING, Any

from django.core.paginator import Page
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from harbor_refresh.executions.admin.base import ReadOnlyAdmin
from harbor_refresh.executions.admin.formatters import execution_link, moment, status_label
from harbor_refresh.executions.admin.search import parse_id
from harbor_refresh.executions.admin.site_pages import page
from harbor_refresh.executions.admin.unfold_api import PaginationInlineFormSet, TabularInline, display
from harbor_refresh.executions.models import StatusChange

if TYPE_CHECKING:
    from django.core.paginator import Paginator


class StatusChangeColumns:
    """The columns of a change, for the list and for the history under an execution."""

    @display(description="From")
    def was(self, change: StatusChange) -> SafeString:
        return status_label(change.from_status)

    @display(description="To")
    def became(self, change: StatusChange) -> SafeString:
        return status_label(change.to_status)

    @display(description="When")
    def when(self, change: StatusChange) -> str | SafeString:
        return moment(change.at)


@page(StatusChange)
class StatusChangeAdmin(StatusChangeColumns, ReadOnlyAdmin):
    list_display = ("id", "execution_number", "revision", "was", "became", "when")
    fields = ("execution_number", "revision", "was", "became", "when")
    readonly_fields = fields
    search_fields = ("execution",)
    search_help_text = "Execution id"

    @display(description="Execution")
    def execution_number(self, change: StatusChange) -> SafeString:
        return execution_link(change.execution_id)

    def matching(self, rows: QuerySet[StatusChange], text: str) -> QuerySet[StatusChange]:
        if not text:
            return rows
        found = parse_id(text.strip())
        return rows.none() if found is None else rows.filter(execution_id=found)


class PageFormSet(PaginationInlineFormSet):
    """Check the page number, because unfold accepts any word of digits, even if no such number or page exists."""

    def get_page_num(self) -> int:
        return parse_id(self.request.GET.get(self.get_pagination_key(), "")) or 1

    def get_page(self, paginator: "Paginator[Any]", page: int) -> Page[Any]:
        paginator.count = self.instance.changes  # counted by the query that has read the execution
        return super().get_page(paginator, page)


class HistoryInline(StatusChangeColumns, TabularInline):
    """The history of one execution, newest first, a page at a time."""

    model = StatusChange
    formset = PageFormSet
    verbose_name_plural = "History"
    fields = ("revision", "was", "became", "when")
    readonly_fields = fields
    ordering = ("-revision",)
    per_page = 20
    extra = 0
    can_delete = False
    hide_title = True
    tab = True

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
