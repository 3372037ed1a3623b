"""Dangling executions: those that have no end although none of their tasks has moved for a long time."""

from datetime import timedelta

from harbor_refresh.executions.database import run
from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.models import Execution

PAGE = 1_000


def refresh_page(age: timedelta, after_id: int) -> tuple[int, list[int], int | None]:
    """Refresh the dangling executions of the next page, in id order. Return how many that ended, the ids of the
    others, and the id to go on after, None after the last page.

    A refresh does not end an execution with an unfinished task or without tasks. One that another transaction has
    locked, or that the database refuses to write, is left for the next sweep.
    """
    looked_at, last, ids = run("find_dangling", after_id=after_id, page=PAGE, age=age)[0]
    refresh(ids, wait=False)
    left = list(Execution.objects.filter(pk__in=ids, end_time=None).order_by("pk").values_list("pk", flat=True))
    return len(ids) - len(left), left, last if looked_at == PAGE else None
