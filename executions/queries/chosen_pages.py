"""The executions that a verb for many does: pages of those that a filter chooses, in the order of their ids; their
count; and the ranges of ids into which the work is divided.

The rows are read in windows of a bounded number of ids, because a filter that no index serves would otherwise read
the whole table to find the rows of one page. Gaps between ids cost nothing.
"""

from dataclasses import dataclass
from itertools import pairwise
from time import monotonic

from django.db.models import QuerySet

from harbor_refresh.executions.models import Execution
from harbor_refresh.executions.queries.filters import Filter

#: The vendor type of the executions whose jobs do a verb for many others (tasks/operations/bulk.py). They are
#: chosen only by this name or by their ids, so that a stop of all does not stop the others of its kind.
BULK = "BULK_ACTION"
#: Rows that one query of a page, or of the count, reads at most.
WINDOW = 20_000
COUNTED_WINDOW = 100_000
#: Ids in a range at least, and how many ranges there are at most: each is a job, which takes some 30 ms although
#: nothing is chosen in it.
RANGE, RANGES = 500, 200


@dataclass(frozen=True)
class Counted:
    """How many executions up to the id `highest` were chosen. If not `is_complete`, there may be more."""

    count: int
    is_complete: bool
    highest: int


def highest_id() -> int:
    """The highest id there is, or 0. Rows that another transaction has not committed yet count as later."""
    return Execution.objects.order_by("-pk").values_list("pk", flat=True).first() or 0


def page_after(cursor: int, chosen: Filter, *, highest: int, size: int) -> tuple[list[int], int]:
    """Return the ids of the next page, and the last id that was looked at. A page may be empty and not the last;
    that of the last one is `highest`."""
    rows, end = _window(chosen, cursor, highest, WINDOW)
    ids = list(rows.order_by("pk").values_list("pk", flat=True)[:size])
    return ids, ids[-1] if len(ids) == size else end


def span(chosen: Filter, highest: int) -> tuple[int, int]:
    """Return the range `(after, up_to]` of the ids up to `highest` among which the chosen ones are."""
    return (min(chosen.ids) - 1, min(highest, max(chosen.ids))) if chosen.ids else (0, highest)


def ranges(chosen: Filter, highest: int) -> list[tuple[int, int]]:
    """Divide that range evenly."""
    first, highest = span(chosen, highest)
    width = max(RANGE, -(-(highest - first) // RANGES))
    return list(pairwise([*range(first, highest, width), highest]))


def chooses_bulk(chosen: Filter) -> bool:
    """Whether it may choose executions of the type BULK."""
    return bool(chosen.ids) or chosen.vendor_type == BULK


def count(chosen: Filter, *, seconds: float) -> Counted:
    """Count, and give up after so many seconds."""
    highest = highest_id()
    deadline = monotonic() + seconds
    found, cursor = 0, 0
    while cursor < highest:
        rows, cursor = _window(chosen, cursor, highest, COUNTED_WINDOW)
        found += rows.count()
        if monotonic() > deadline:
            break
    return Counted(found, cursor >= highest, highest)


def _window(chosen: Filter, cursor: int, highest: int, size: int) -> tuple[QuerySet[Execution], int]:
    """Return the chosen rows of a window, and the id of its last row, which is found by the primary key alone."""
    rows = Execution.objects.filter(pk__gt=cursor, pk__lte=highest)
    ids = rows.order_by("pk").values_list("pk", flat=True)
    end = next(iter(ids[size - 1 : size]), highest)
    rows = chosen.apply(rows.filter(pk__lte=end))
    return (rows if chooses_bulk(chosen) else rows.exclude(vendor_type=BULK)), end
