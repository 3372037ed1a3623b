"""Groups of errors: the newest tasks that ended with an error, by message, by vendor and by hour."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from harbor_refresh.executions.attached.attachment import is_attached
from harbor_refresh.executions.database import run

#: How many tasks are read. 10,000 take about 40 ms.
COMPARED = 10_000
MOST = 50


@dataclass(frozen=True)
class Group:
    """Errors with one message, vendor or hour; `key` is that. `task_id` is one of the newest, to look at."""

    key: str | datetime
    count: int
    last_end: datetime
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
    rows = run(
        "group_errors",
        execution_id=execution_id,
        since=since,
        compared=COMPARED,
        any_status=is_attached(),
        most=MOST,
    )
    found: dict[str, list[Group]] = {"message": [], "vendor": [], "hour": []}
    for kind, message, vendor, hour, count, last_end, task_id, of_execution, _ in rows:
        key = {"message": message, "vendor": vendor, "hour": hour}[kind]
        found[kind].append(Group(key, count, last_end, task_id, of_execution))
    is_capped = bool(rows) and rows[0][-1] >= COMPARED
    return Groups(found["message"], found["vendor"], found["hour"], is_capped)
