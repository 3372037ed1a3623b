"""Pages of executions, the newest first, in bounded time at any size of the table."""

from collections.abc import Sequence
from dataclasses import dataclass

from harbor_refresh.executions.lifecycle import vendor_keys
from harbor_refresh.executions.models import Execution
from harbor_refresh.executions.queries.filters import Filter

#: The most executions that one page compares with the filter. No index has the columns that a refresh writes, so a
#: filter by status compares row by row. 20,000 take about 20 ms.
COMPARED = 20_000


@dataclass(frozen=True)
class Page:
    """Executions, and the id below which the next page begins. None: this page is the last."""

    items: Sequence[Execution]
    below: int | None


def page(chosen: Filter, limit: int, below: int | None = None) -> Page:
    """Return the newest executions that meet the filter and whose ids are less than `below`.

    A page may hold fewer than `limit`, even none, and not be the last: it ends after COMPARED executions. What if
    executions are created meanwhile: their ids are higher, so they move no page. What if some are deleted: the
    next page begins below an id, which need not exist. The attributes of its executions are not read, because they
    have no bound together.
    """
    rows = Execution.objects.order_by("-pk").defer("extra_attrs")
    if below is not None:
        rows = rows.filter(pk__lt=below)
    floor = None
    if not _has_index(chosen):
        # the planner reads the ids alone here, backwards from `below`
        floor = rows.values_list("pk", flat=True)[COMPARED - 1 : COMPARED].first()
        if floor is not None:
            rows = rows.filter(pk__gte=floor)
    items = list(chosen.apply(rows)[:limit])
    vendor_keys.read_for(items)
    if len(items) == limit:
        return Page(items, items[-1].pk)
    return Page(items, floor)


def _has_index(chosen: Filter) -> bool:
    """Whether each row that is read is answered: there is no filter, or only one by vendor type and vendor id. A
    vendor id that is text has an index without the vendor type as well."""
    by_id = chosen.vendor_id is not None and bool(chosen.vendor_type or isinstance(chosen.vendor_id, str))
    return chosen.is_empty or (by_id and chosen == Filter(chosen.vendor_type, chosen.vendor_id))
