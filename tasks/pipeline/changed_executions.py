"""Which executions a pass of reconcile compares: those whose tasks changed between two moments, or all of them.

Each function yields pages: the ids of the executions, and how many rows were looked at for them. A change between
two pages is later than the end of the pass, and belongs to the next one.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from harbor_refresh.executions.attached.attachment import is_attached
from harbor_refresh.executions.models import Execution
from harbor_refresh.tasks.database import run
from harbor_refresh.tasks.queue.sets import pages

Pages = Iterator[tuple[list[int], int]]

PAGE = 5_000
BEGINNING = datetime(1, 1, 1, tzinfo=UTC)

#: Harbor's cores write the time of a change by their own clocks, in whole seconds, and commit it later, if they
#: stood still or waited for a lock. So what changed so long before the watermark is compared again.
MARGIN = timedelta(minutes=5)
#: The ids that one reading of Harbor's table returns.
MOST = 10 * PAGE


def changed_between(begin: datetime, end: datetime) -> Pages:
    """Yield the executions with a task that changed between the two moments."""
    if not is_attached():
        return _by_the_index(begin, end)
    # at the first pass all have changed, and their order is cheaper than their times
    return all_executions() if begin <= BEGINNING else _by_the_table(begin, end)


def all_executions() -> Pages:
    last_id, of_all = 0, Execution.objects.order_by("pk").values_list("pk", flat=True)
    while ids := list(of_all.filter(pk__gt=last_id)[:PAGE]):
        yield ids, len(ids)
        last_id = ids[-1]


def _by_the_index(begin: datetime, end: datetime) -> Pages:
    """Read the tasks in the order of their changes."""
    time, last_id = begin, 0
    while True:
        ids, time_of_last, id_of_last, looked_at = run(
            "changed_since", after_time=time, after_id=last_id, before=end, page=PAGE
        )[0]
        if not looked_at:
            return
        yield ids, looked_at
        time, last_id = time_of_last, id_of_last


def _by_the_table(begin: datetime, end: datetime) -> Pages:
    """Read Harbor's table from one end to the other, because it has no index on the time of a change."""
    last_id = 0
    while True:
        rows = run("changed_executions", after_id=last_id, since=begin, margin=MARGIN, before=end, most=MOST)
        for page in pages((pk for (pk,) in rows), PAGE):
            yield page, len(page)
        if len(rows) < MOST:
            return
        (last_id,) = rows[-1]
