"""Groups of errors: the newest tasks that ended with an error, by message, by vendor and by hour."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q
from django.db.models.functions import Left

from harbor_refresh.executions.attached.attachment import is_attached
from harbor_refresh.executions.models import Task
from harbor_refresh.executions.status import Status

#: How many tasks are read. 10,000 take about 100 ms.
COMPARED = 10_000
#: Groups of each kind, and characters of a message.
MOST, MAX_MESSAGE = 50, 200

#: A task, its execution, and its end, which Harbor may not have written.
Ended = tuple[int, int, datetime | None]


@dataclass(frozen=True)
class Group:
    """Errors with one message, vendor or hour; `key` is that. `task_id` is one of the newest, to look at."""

    key: str | datetime
    count: int
    last_end: datetime | None
    task_id: int
    execution_id: int


@dataclass(frozen=True)
class Groups:
    """If `is_capped`, there are older errors that were not read."""

    messages: Sequence[Group]
    vendors: Sequence[Group]
    hours: Sequence[Group]
    is_capped: bool


def group_errors(*, execution_id: int | None = None, since: datetime | None = None) -> Groups:
    """Group the newest COMPARED errors, of one execution or of all, that ended since a moment."""
    tasks = Task.objects.order_by("-execution_id", "-pk")
    if execution_id is not None:
        tasks = tasks.filter(execution_id=execution_id)
    if not is_attached():  # Harbor has no index of the status
        tasks = tasks.filter(~Q(status=Status.SUCCESS), status=Status.ERROR)
    columns = ("pk", "execution_id", "end_time", "status", "vendor_type", Left("status_message", MAX_MESSAGE))
    rows = list(tasks.values_list(*columns)[:COMPARED])
    messages, vendors, hours = (defaultdict[Any, list[Ended]](list) for _ in range(3))
    for pk, of_execution, end, status, vendor, message in rows:
        if status == Status.ERROR and (since is None or (end and end >= since)):
            one = pk, of_execution, end
            messages[message or ""].append(one)
            vendors[vendor].append(one)
            if end:
                hours[end.replace(minute=0, second=0, microsecond=0)].append(one)
    by_hour = sorted(_groups(hours), key=lambda one: one.key, reverse=True)
    return Groups(_groups(messages)[:MOST], _groups(vendors)[:MOST], by_hour[:MOST], len(rows) >= COMPARED)


def _groups(found: Mapping[Any, Sequence[Ended]]) -> list[Group]:
    """Return the groups, the largest first."""
    groups = []
    for key, ones in sorted(found.items(), key=lambda item: (-len(item[1]), item[0])):
        task_id, execution_id, _ = max(ones)
        last_end = max((end for *_, end in ones if end), default=None)
        groups.append(Group(key, len(ones), last_end, task_id, execution_id))
    return groups
