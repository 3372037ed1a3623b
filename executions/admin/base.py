"""The base of the screens: read-only, newest first, and as fast over 1,000,000 rows as over ten. It gives all of
them one answer to values that no row can have."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib.admin import ShowFacets
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ERROR_FLAG
from django.core.paginator import Paginator
from django.db import DataError
from django.db.models import TextField
from django.db.models.functions import Cast, Left, Length
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from harbor_refresh.executions.admin.bounds import bounds
from harbor_refresh.executions.admin.formatters import NOTHING
from harbor_refresh.executions.admin.search import parse_id
from harbor_refresh.executions.admin.unfold_api import ChangeList, ModelAdmin, display
from harbor_refresh.executions.text import storable

if TYPE_CHECKING:
    from django.db.models import QuerySet


#: Characters of the attributes that a page shows.
MAX_SHOWN = 10_000


class CappedPaginator(Paginator):  # type: ignore[type-arg]
    """A paginator that counts at most `MAX_ROWS` rows. Search and filters find the rows beyond."""

    MAX_ROWS = 10_000
    template_name = "executions/admin/pagination.html"
    #: A filter has looked at a part of the rows only, so there may be more.
    is_bounded = False

    @cached_property
    def _counted(self) -> int:
        rows: QuerySet[Any] = self.object_list  # type: ignore[assignment]
        return rows.order_by().values("pk")[: self.MAX_ROWS + 1].count()

    @cached_property
    def count(self) -> int:
        return min(self._counted, self.MAX_ROWS)

    @property
    def is_capped(self) -> bool:
        return self.is_bounded or self._counted > self.MAX_ROWS


@contextmanager
def _bad_lookups() -> Iterator[None]:
    """Answer a filter value that the database cannot read like an unknown filter. Django checks the names of
    filters, but not all of their values."""
    try:
        yield
    except (DataError, ValueError, OverflowError) as exc:
        raise IncorrectLookupParameters(exc) from exc


class CappedChangeList(ChangeList):
    @property
    def pages(self) -> Iterator[int | str]:
        """The numbers of the pages, with a gap for most of them."""
        pages: Iterator[int | str] = self.paginator.get_elided_page_range(self.page_num)
        return pages

    def get_queryset(self, request: HttpRequest, *args: Any, **options: Any) -> "QuerySet[Any]":
        with _bad_lookups():
            return super().get_queryset(request, *args, **options)

    def get_results(self, request: HttpRequest) -> None:
        with _bad_lookups():
            super().get_results(request)
        self.bounds = bounds(request)
        self.paginator.is_bounded = bool(self.bounds) and self.result_count > 0
        if not self.query and not self.has_active_filters:
            # without this, unfold offers "show all" on the page that shows all
            self.full_result_count = self.result_count


class ReadOnlyAdmin(ModelAdmin):
    #: Columns that no page reads as a whole, because one value may take 2 MB.
    large: ClassVar[tuple[str, ...]] = ()
    paginator = CappedPaginator
    show_full_result_count = False
    show_facets = ShowFacets.NEVER  # they count every row of every choice
    list_per_page = 50
    list_max_show_all = 0
    list_disable_select_all = True
    list_fullwidth = True
    ordering: ClassVar[tuple[str, ...]] = ("-pk",)
    sortable_by: ClassVar[tuple[str, ...]] = ()
    empty_value_display = NOTHING

    def get_queryset(self, request: HttpRequest) -> "QuerySet[Any]":
        rows = super().get_queryset(request).defer(*self.large)
        place = request.resolver_match
        if "attributes" in self.readonly_fields and place and "object_id" in place.kwargs:  # the page of a row
            json = Cast("extra_attrs", TextField())
            rows = rows.annotate(attributes_begin=Left(json, MAX_SHOWN), attributes_length=Length(json))
        return rows

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return CappedChangeList

    def get_search_results(
        self, request: HttpRequest, queryset: "QuerySet[Any]", search_term: str
    ) -> tuple["QuerySet[Any]", bool]:
        return (self.matching(queryset, search_term) if storable(search_term) else queryset.none()), False

    def matching(self, rows: "QuerySet[Any]", text: str) -> "QuerySet[Any]":
        """Return the rows that match every word of the text."""
        raise NotImplementedError

    def response_action(self, request: HttpRequest, queryset: "QuerySet[Any]", *place: Any) -> HttpResponse | None:
        if any(parse_id(one) is None for one in request.POST.getlist(ACTION_CHECKBOX_NAME)):
            return HttpResponseRedirect(f"{request.path}?{ERROR_FLAG}=1")
        return super().response_action(request, queryset, *place)

    @display(description="Extra attrs")
    def attributes(self, row: Any) -> str:
        """The beginning of the attributes of an execution or a task, as JSON."""
        begin, length = row.attributes_begin, row.attributes_length
        if (length or 0) <= MAX_SHOWN:
            return begin or NOTHING
        return f"{begin}… The first {MAX_SHOWN:,} of {length:,} characters are shown. The API answers with all."

    def has_add_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False
