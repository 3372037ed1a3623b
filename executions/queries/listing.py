"""Executions that a filter chooses, the newest first, in bounded time at any size of the table: pages for the API,
and the list of the admin."""

from collections.abc import Sequence
from typing import Any

from django.db.models import BigIntegerField, ExpressionWrapper, F, QuerySet

from harbor_refresh.executions.database import among
from harbor_refresh.executions.lifecycle import vendor_keys
from harbor_refresh.executions.models import Execution, Task
from harbor_refresh.executions.queries.filters import Filter

#: The most executions that one page compares with the filter. No index has the columns that a refresh writes, so a
#: filter by status compares row by row. 20,000 take about 20 ms.
COMPARED = 20_000
#: The most executions that the list of the admin compares, and the most that it then shows.
NEWEST, MOST = 50_000, 2_000
#: The same for a filter that has to look at the tasks of each.
NEWEST_WITH_JOBS = 5_000


def page(chosen: Filter, limit: int, below: int | None) -> tuple[list[Execution], int | None]:
    """Return the newest executions that meet the filter and whose ids are less than `below`; and the id below
    which the next page begins, or None if this page is the last.

    A page may hold fewer than `limit`, even none, and not be the last: it ends after COMPARED executions. If
    executions are created meanwhile, then their higher ids move no page. If some are deleted, then the
    next page begins below an id, which need not exist. The attributes of its executions are not read, because they
    have no bound together.
    """
    rows = Execution.objects.order_by("-pk").defer("extra_attrs")
    if below is not None:
        rows = rows.filter(pk__lt=below)
    # the planner reads the ids alone here, backwards from `below`
    floor = 0 if _has_index(chosen) else lowest_of_the_newest(rows, COMPARED)
    if floor:
        rows = rows.filter(pk__gte=floor)
    items = list(chosen.apply(rows)[:limit])
    vendor_keys.read_for(items)
    is_full = len(items) == limit
    return items, items[-1].pk if is_full else (floor or None)


def _has_index(chosen: Filter) -> bool:
    """Whether each row that is read is answered: there is no filter, or only one by vendor type and vendor id."""
    return chosen.is_empty or (_has_index_of_id(chosen) and chosen == Filter(chosen.vendor_type, chosen.vendor_id))


def _has_index_of_id(chosen: Filter) -> bool:
    """A vendor id that is text has an index without the vendor type as well."""
    return isinstance(chosen.vendor_id, str) or (chosen.vendor_id is not None and bool(chosen.vendor_type))


def bounded(chosen: Filter, rows: QuerySet[Execution]) -> tuple[QuerySet[Execution], int | None]:
    """Return the rows that meet the filter, and how many of the newest were compared if these are not all.

    Indexes answer for the vendor, the start, ids and the quarantine. The other conditions are compared with the
    newest NEWEST of the rows that are left. Of these, and of those in quarantine, MOST ids are passed on, so that
    no order can make the list slow.
    """
    by_index = Filter(
        chosen.vendor_type,
        chosen.vendor_id if _has_index_of_id(chosen) else None,
        started_after=chosen.started_after,
        started_before=chosen.started_before,
        ids=chosen.ids,
        quarantined=chosen.quarantined or None,
    )
    left = by_index.apply(rows)
    if chosen == by_index and not chosen.quarantined:
        return left, None
    compared = NEWEST if chosen.has_jobs is None else NEWEST_WITH_JOBS
    floor = 0 if chosen == by_index else lowest_of_the_newest(left, compared)
    newest = left.filter(pk__gte=floor) if floor else left
    ids = list(chosen.apply(newest).order_by("-pk").values_list("pk", flat=True)[:MOST])
    return rows.filter(among(ids)), compared if floor or len(ids) == MOST else None


def tasks_after(execution_id: int, after: int | None, most: int, statuses: Sequence[str] = ()) -> list[int]:
    """Return the ids of the next tasks of an execution, or of those with one of the statuses.

    With ORDER BY id alone, the planner may walk the primary key over all older tasks of the table. So it walks
    over COMPARED ids at most, because tasks that were created together have near ids. If that is too few, the
    index of the execution finds the page, after reading all its tasks. No index has an id or an execution `+ 0`.
    """
    tasks = Task.objects.filter(status__in=statuses) if statuses else Task.objects.all()
    ids = tasks.filter(pk__gt=after or 0).values_list("pk", flat=True)
    if after is not None:
        of = ExpressionWrapper(F("execution") + 0, BigIntegerField())
        near = ids.alias(of=of).filter(of=execution_id, pk__lte=after + COMPARED).order_by("pk")
        if len(found := list(near[:most])) == most:
            return found
    return list(ids.filter(execution_id=execution_id).order_by(F("pk") + 0)[:most])


def lowest_of_the_newest(rows: QuerySet[Any], count: int) -> int:
    """Return the id of the last of the newest `count` rows; 0 if there are fewer."""
    pks = rows.order_by("-pk").values_list("pk", flat=True)
    return next(iter(pks[count - 1 : count]), 0)
