"""Groups of errors: the newest tasks that ended with an error, by message, by vendor and by hour."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db.models import Count, F, Max, Q, QuerySet, Value
from django.db.models.functions import Coalesce, Left, TruncHour

from harbor_refresh.executions.attached.attachment import is_attached
from harbor_refresh.executions.database import among
from harbor_refresh.executions.models import Task
from harbor_refresh.executions.status import Status

#: How many tasks are read; 10,000 take about 100 ms. Of one execution 500 are, because open pages ask every 2 s.
COMPARED, OF_ONE = 10_000, 500
#: Groups of each kind, and characters of a message.
MOST, MAX_MESSAGE = 50, 200


@dataclass(frozen=True)
class Group:
    """Errors with one message, vendor or hour; `key` is that. `task_id` is the newest of them, to look at."""

    key: str | datetime
    count: int
    last_end: datetime | None
    task_id: int


def by_message(errors: QuerySet[Task]) -> list[Group]:
    return _groups(errors, Coalesce(Left("status_message", MAX_MESSAGE), Value("")), "-count", "key")


def by_vendor(errors: QuerySet[Task]) -> list[Group]:
    return _groups(errors, F("vendor_type"), "-count", "key")


def by_hour(errors: QuerySet[Task]) -> list[Group]:
    ended = errors.filter(end_time__year__gt=1)  # the year 1 is how Harbor says that there is no end
    return _groups(ended, TruncHour("end_time", tzinfo=UTC), "-key")


def newest_errors(*, execution_id: int | None = None, since: datetime | None = None) -> tuple[QuerySet[Task], str]:
    """Return the newest errors, of one execution or of all, that ended since a moment; and a sentence, if
    there may be older ones."""
    most = COMPARED if execution_id is None or is_attached() else OF_ONE
    tasks = Task.objects.order_by("-execution_id", "-pk")
    if execution_id is not None:
        tasks = tasks.filter(execution_id=execution_id)
    if not is_attached():  # Harbor has no index of the status
        tasks = tasks.filter(~Q(status=Status.SUCCESS), status=Status.ERROR)
    newest = list(tasks.values_list("pk", flat=True)[:most])
    errors = Task.objects.filter(among(newest), status=Status.ERROR)
    if since is not None:
        errors = errors.filter(end_time__gte=since)
    failed = "" if is_attached() else " that failed"
    return errors, f"The errors of the newest {most:,} tasks{failed}." if len(newest) >= most else ""


def _groups(errors: QuerySet[Task], key: Any, *order: str) -> list[Group]:
    groups = errors.values(key=key).annotate(count=Count("pk"), last_end=Max("end_time"), task_id=Max("pk"))
    return [Group(**one) for one in groups.order_by(*order)[:MOST]]
