"""Numbered reports, and what they leave in the database.

Report N is of task N modulo the tasks and begins the next run of it. A run counts only if it is newer than the
last one, and each adds one to `run_count`. So a task whose `run_count` equals its revision has had every report,
in order and once.
"""

from collections.abc import Mapping, Sequence

from harbor_refresh.client import Report
from harbor_refresh.executions.models import Task

State = Mapping[int, tuple[str, int, int, str]]


def numbered(tasks: Sequence[int], number: int) -> Report:
    round_, place = divmod(number, len(tasks))
    return Report(tasks[place], "Running", round_ + 1, f"report {number}")


def state(tasks: Sequence[int]) -> State:
    """Status, revision, number of runs and message of each task."""
    rows = Task.objects.filter(pk__in=tasks)
    return {one.pk: (one.status, one.status_revision, one.run_count, one.status_message) for one in rows}


def after(tasks: Sequence[int], count: int) -> State:
    """The state after the first `count` numbered reports, each applied once and in order."""
    found = dict.fromkeys(tasks, ("Pending", 0, 0, ""))
    for number in range(count):
        one = numbered(tasks, number)
        found[one.task_id] = (one.status, one.revision, one.revision, one.message or "")
    return found
