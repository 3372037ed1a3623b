"""What the screens share: read-only, newest first, and as fast over 1,000,000 rows as over ten."""

from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib.admin import ShowFacets
from django.core.paginator import Paginator
from django.http import HttpRequest

from executions.admin.cells import NOTHING
from executions.admin.looks import ChangeList, ModelAdmin

if TYPE_CHECKING:
    from django.db.models import QuerySet


class CappedPaginator(Paginator):  # type: ignore[type-arg]
    """Counts up to `MOST` rows and no further. What lies beyond is for search and filters."""

    MOST = 10_000
    template_name = "executions/admin/pagination.html"

    @cached_property
    def _counted(self) -> int:
        rows: QuerySet[Any] = self.object_list  # type: ignore[assignment]
        return rows.order_by().values("pk")[: self.MOST + 1].count()

    @cached_property
    def count(self) -> int:
        return min(self._counted, self.MOST)

    @property
    def is_capped(self) -> bool:
        return self._counted > self.MOST


class CappedChangeList(ChangeList):
    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        if not self.query and not self.has_active_filters:
            # else unfold offers to show all, on the page that shows all
            self.full_result_count = self.result_count


class ReadOnlyAdmin(ModelAdmin):
    paginator = CappedPaginator
    show_full_result_count = False
    show_facets = ShowFacets.NEVER  # they count every row of every choice
    list_per_page = 50
    list_max_show_all = 0
    list_disable_select_all = True
    list_fullwidth = True
    ordering: ClassVar[tuple[str, ...]] = ("-pk",)
    sortable_by = ()
    empty_value_display = NOTHING

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return CappedChangeList

    def has_add_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False
