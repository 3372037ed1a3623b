"""Read-only lists, as fast over 1,000,000 rows as over 10; those of rows with a status have a legend."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import cached_property
from typing import Any, ClassVar

from django.contrib.admin import ShowFacets
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ERROR_FLAG
from django.core.paginator import Paginator
from django.db import DataError
from django.db.models import Count, Exists, OuterRef, Q, QuerySet, TextField
from django.db.models.functions import Cast, Left, Length
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from harbor_refresh.executions.admin.base import DeclaredChangeList, ModelAdmin, never
from harbor_refresh.executions.admin.filters import bounds, parse_id
from harbor_refresh.executions.admin.formatters import NOTHING, column, elapsed, execution_link, once, status_label
from harbor_refresh.executions.attached.ownership import page_context
from harbor_refresh.executions.models import Execution, Gate, Task
from harbor_refresh.executions.status import Status
from harbor_refresh.executions.text import storable

#: Characters of the attributes that a page shows.
MAX_SHOWN = 10_000
#: Words of a search. The others are left out, because each makes the statement longer.
MAX_WORDS = 10
#: Tasks of an execution that a list counts by status at most. Its page counts all.
MOST_COUNTED = 100_000
MORE_TASKS = f"more than {MOST_COUNTED:,}"


class CappedPaginator(Paginator):  # type: ignore[type-arg]
    """A paginator that counts at most `MAX_ROWS` rows. Search and filters find the rows beyond."""

    MAX_ROWS = 10_000
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


class CappedChangeList(DeclaredChangeList):
    def get_results(self, request: HttpRequest) -> None:
        try:
            super().get_results(request)
        except DataError as exc:  # PostgreSQL takes no offset of 23 hours from UTC, and Python does
            raise IncorrectLookupParameters(f"{exc}") from exc
        self.bounds = bounds(request)
        self.paginator.is_bounded = bool(self.bounds) and self.result_count > 0
        if not self.query and not self.has_active_filters:
            # without this, unfold offers "show all" on the page that shows all
            self.full_result_count = self.result_count


def _attributes(row: Any) -> str:
    """The beginning of the attributes of an execution or a task, as JSON."""
    json = Cast("extra_attrs", TextField())
    rows = type(row).objects.filter(pk=row.pk).values_list(Left(json, MAX_SHOWN), Length(json))
    begin, length = rows.first() or ("", 0)
    if (length or 0) <= MAX_SHOWN:
        return begin or NOTHING
    return f"{begin}… The first {MAX_SHOWN:,} of {length:,} characters are shown. The API answers with all."


class ReadOnlyAdmin(ModelAdmin):
    #: Columns that no page reads as a whole, because one value may take 2 MB.
    large: ClassVar[tuple[str, ...]] = ()
    changelist = CappedChangeList
    paginator = CappedPaginator
    show_full_result_count = False
    show_facets = ShowFacets.NEVER  # they count every row of every choice
    list_per_page = 50
    list_max_show_all = 0
    #: Whether the list offers to choose the rows of all pages.
    acts_on_all = False
    ordering: ClassVar[tuple[str, ...]] = ("-pk",)
    sortable_by: ClassVar[tuple[str, ...]] = ()

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).defer(*self.large)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        return (self.matching(queryset, search_term) if storable(search_term) else queryset.none()), False

    def matching(self, rows: QuerySet[Any], text: str) -> QuerySet[Any]:
        """Return the rows that each word finds: by an id, or by a search field with a lookup (`name__exact`)."""
        for word in text.split()[:MAX_WORDS]:
            pk = parse_id(word) or -1  # which no row has
            lookups = ((name, word if "__" in name else pk) for name in self.search_fields)
            rows = rows.filter(Q(*lookups, _connector=Q.OR))
        return rows

    def response_action(self, request: HttpRequest, queryset: QuerySet[Any], *place: Any) -> HttpResponse | None:
        is_across = request.POST.get("select_across", "0") != "0"
        has_nonsense = any(parse_id(one) is None for one in request.POST.getlist(ACTION_CHECKBOX_NAME))
        if has_nonsense or (is_across and not self.acts_on_all):
            return HttpResponseRedirect(f"{request.path}?{ERROR_FLAG}=1")
        return super().response_action(request, queryset, *place)

    has_add_permission = has_change_permission = has_delete_permission = never

    def has_act_permission(self, request: HttpRequest) -> bool:
        """To act on rows takes the permission to change them, which no form of this screen does."""
        return super().has_change_permission(request)

    # those of more than one list or page
    attributes = column(once("_attributes", _attributes), "Extra attrs")
    execution_number = column("execution_id", "Execution", execution_link)
    ended = column("end_time", "Ended")
    updated = column("update_time", "Updated")
    duration = column(lambda row: elapsed(row.start_time, row.end_time), "Took")


class LegendAdmin(ReadOnlyAdmin):
    """A list with a legend. Links narrow it to the rows of one execution, if it has `lookups_of_links`."""

    list_head = "executions/admin/list_head.html"
    meanings: ClassVar[dict[Status, str]] = {
        Status.PENDING: "waits for a runner",
        Status.SCHEDULED: "given to a runner",
        Status.RUNNING: "at work",
        Status.ERROR: "failed",
        Status.STOPPED: "stopped, revoked or expired, or its chain broke",
        Status.SUCCESS: "done",
    }

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        legend = [(status_label(status), meaning) for status, meaning in self.meanings.items()]
        context = {**(extra_context or {}), "legend": legend, **page_context()}
        for lookup in self.lookups_of_links:
            if found := parse_id(request.GET.get(lookup, "")):
                context["execution_link"] = execution_link(found)
        return super().changelist_view(request, context)


def with_task_counts(executions: Iterable[Execution]) -> list[Execution]:
    """Read into each its `task_counts`, its tasks by status, without its gate; None if there are more than
    MOST_COUNTED. The index task_rollup alone answers this."""
    found = list(executions)
    more = Task.objects.filter(execution=OuterRef("pk"))[MOST_COUNTED:]
    small = Execution.objects.filter(~Exists(more), pk__in=[one.pk for one in found])
    ids = list(small.values_list("pk", flat=True))
    counts: dict[int, Counter[str]] = defaultdict(Counter)
    rows = Task.objects.filter(execution_id__in=ids).order_by()
    for pk, status, count in rows.values_list("execution_id", "status").annotate(count=Count("*")):
        counts[pk][status] = count
    gates = Task.objects.filter(pk__in=Gate.objects.filter(pk__in=ids).values("task_id"))
    for pk, status in gates.values_list("execution_id", "status"):
        counts[pk][status] -= 1
    for one in found:
        one.__dict__["task_counts"] = dict(+counts[one.pk]) if one.pk in ids else None
    return found
