"""Executions that a filter chooses, the newest first, in bounded time at any size of the table: pages for the API,
and the list of the admin."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from harbor_refresh.executions.attached.attachment import is_attached
from harbor_refresh.executions.database import among, run
from harbor_refresh.executions.lifecycle import vendor_keys
from harbor_refresh.executions.models import Execution, Quarantine
from harbor_refresh.executions.queries.filters import Filter
from harbor_refresh.executions.status import Status, is_final

#: The most executions that one page compares with the filter. No index has the columns that a refresh writes, so a
#: filter by status compares row by row. 20,000 take about 20 ms.
COMPARED = 20_000
#: The most executions that the list of the admin compares, and the most that it then shows.
NEWEST, MOST = 50_000, 2_000
#: The same for a filter that has to look at the tasks of each.
NEWEST_WITH_JOBS = 5_000


@dataclass(frozen=True)
class Page:
    """Executions, and the id below which the next page begins. None: this page is the last."""

    items: Sequence[Execution]
    below: int | None


def page(chosen: Filter, limit: int, below: int | None = None) -> Page:
    """Return the newest executions that meet the filter and whose ids are less than `below`.

    A page may hold fewer than `limit`, even none, and not be the last: it ends after COMPARED executions. If
    executions are created meanwhile, then their higher ids move no page. If some are deleted, then the
    next page begins below an id, which need not exist. The attributes of its executions are not read, because they
    have no bound together.
    """
    rows = Execution.objects.order_by("-pk").defer("extra_attrs")
    if below is not None:
        rows = rows.filter(pk__lt=below)
    floor = None
    if not _has_index(chosen):
        # the planner reads the ids alone here, backwards from `below`
        floor = lowest_of_the_newest(rows, COMPARED)
        if floor is not None:
            rows = rows.filter(pk__gte=floor)
    items = list(chosen.apply(rows)[:limit])
    vendor_keys.read_for(items)
    if len(items) == limit:
        return Page(items, items[-1].pk)
    return Page(items, floor)


def _has_index(chosen: Filter) -> bool:
    """Whether each row that is read is answered: there is no filter, or only one by vendor type and vendor id."""
    return chosen.is_empty or (_has_index_of_id(chosen) and chosen == Filter(chosen.vendor_type, chosen.vendor_id))


def _has_index_of_id(chosen: Filter) -> bool:
    """A vendor id that is text has an index without the vendor type as well."""
    return isinstance(chosen.vendor_id, str) or (chosen.vendor_id is not None and bool(chosen.vendor_type))


def bounded(chosen: Filter, rows: QuerySet[Execution]) -> tuple[QuerySet[Execution], int | None]:
    """Return the rows that meet the filter, and how many of the newest were compared if these are not all.

    Indexes answer for the vendor, the start and ids. The other conditions are compared with the newest NEWEST of
    the rows that are left, and MOST ids are passed on, so that no order can make the list slow. MOST executions of
    a status, or in quarantine, are found at any age; so is every other condition on them.
    """
    vendor_id = chosen.vendor_id if _has_index_of_id(chosen) else None
    by_index = Filter(
        chosen.vendor_type,
        vendor_id,
        started_after=chosen.started_after,
        started_before=chosen.started_before,
        ids=chosen.ids,
    )
    left = by_index.apply(rows)
    if chosen == by_index:
        return left, None
    compared = NEWEST if chosen.has_jobs is None else NEWEST_WITH_JOBS
    floor = lowest_of_the_newest(left, compared)
    newest = left if floor is None else left.filter(pk__gte=floor)
    ids = set(chosen.apply(newest).order_by("-pk").values_list("pk", flat=True)[:MOST])
    is_complete = floor is None and len(ids) < MOST
    if not is_complete:
        found, is_complete = _of_any_age(chosen)
        if found:
            ids.update(chosen.apply(left.filter(among(found))).values_list("pk", flat=True))
    return rows.filter(among(ids)), None if is_complete else compared


def _of_any_age(chosen: Filter) -> tuple[Sequence[int], bool]:
    """Return the newest executions in quarantine or of the status, and whether these are all; none, if no index
    finds them."""
    if chosen.quarantined:
        found = list(Quarantine.objects.order_by("-pk").values_list("pk", flat=True)[:MOST])
        return found, len(found) < MOST
    if len(chosen.statuses) == 1 and chosen.statuses[0] != Status.SUCCESS and not is_attached():
        return find_by_status(chosen.statuses[0])
    return [], False


def find_by_status(status: str) -> tuple[Sequence[int], bool]:
    """Return the newest executions of this status, which is not Success, and whether these are all. They are found
    by their tasks, MOST of which are looked at.

    An unfinished execution has an unfinished task, one with an error has a task with an error, and one that was
    stopped has a stopped task. Executions without tasks are not found.
    """
    of_tasks = [status] if is_final(status) else [one for one in Status.values if not is_final(one)]
    rows = run("find_by_status", status=status, task_statuses=of_tasks, most=MOST)
    return [pk for pk, _ in rows if pk is not None], rows[0][1] < MOST


def lowest_of_the_newest(rows: QuerySet[Any], count: int) -> int | None:
    """Return the id of the last of the newest `count` rows; None if there are fewer."""
    pks = rows.order_by("-pk").values_list("pk", flat=True)
    return next(iter(pks[count - 1 : count]), None)
