"""The rules of status, rollup and reports in plain Python.

Written from the contract and not from the SQL, one report at a time, so that tests can compare the two. It
fixes two rules that the contract leaves open: a task that never ran starts with the first report that is
Running or final; a message stays until another comes, a new run begins, or the task succeeds.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

CODE = {"Pending": 0, "Scheduled": 1, "Running": 2, "Stopped": 3, "Error": 3, "Success": 3}


def is_final(status: str) -> bool:
    return CODE.get(status, 3) == 3


@dataclass(frozen=True)
class ReferenceTask:
    status: str = "Pending"
    status_code: int = 0
    status_revision: int = 0
    status_message: str = ""
    run_count: int = 0
    start_time: datetime | None = None
    update_time: datetime | None = None
    end_time: datetime | None = None

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> "ReferenceTask":
        return cls(**{name: row[name] for name in cls.__dataclass_fields__})


def changes(task: ReferenceTask, status: str, revision: int) -> bool:
    """A report changes a task only if its revision is newer, or equal with a higher code."""
    if revision > task.status_revision:
        return True
    return revision == task.status_revision and CODE[status] > task.status_code


def reported(task: ReferenceTask, status: str, revision: int, message: str | None, now: datetime) -> ReferenceTask:
    """The task after a report."""
    if not changes(task, status, revision):
        return task
    after = replace(
        task,
        status=status,
        status_code=CODE[status],
        status_revision=revision,
        update_time=now,
        end_time=now if is_final(status) else None,
    )
    if revision > task.status_revision:  # a re-run
        after = replace(after, run_count=task.run_count + 1, start_time=now, status_message="")
    elif CODE[status] >= CODE["Running"] and task.start_time is None:
        after = replace(after, start_time=now)
    if message is not None:
        after = replace(after, status_message=message)
    elif status == "Success":
        after = replace(after, status_message="")
    return after


def rollup(tasks: Iterable[tuple[str, datetime | None]]) -> tuple[str, datetime | None] | None:
    """Status and end_time of an execution from (status, end_time) of its tasks; None: as set by hand."""
    tasks = list(tasks)
    if not tasks:
        return None
    statuses = [status for status, _ in tasks]
    if any(status in ("Pending", "Scheduled", "Running") for status in statuses):
        return "Running", None
    end = max(end for _, end in tasks if end is not None)
    if "Error" in statuses:
        return "Error", end
    if "Stopped" in statuses:
        return "Stopped", end
    return "Success", end
