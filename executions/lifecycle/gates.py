"""Gates: what keeps an open execution from ending while tasks may still be added.

The gate of an execution is one more of its tasks. It is Running until the execution is closed, so the rollup needs
no rule for it. Nothing is added after its end.

| what ends it            | its task                                     |
| ----------------------- | -------------------------------------------- |
| `close`                 | Success                                      |
| its time limit          | Error: nobody said that all tasks were added |
| a stop of the execution | Stopped, until the stop is lifted            |

A retry or a resumption lifts a stop (`pass_stopped`): in that transaction the gate becomes a Success, so the
execution stays closed and ends as its tasks do. The end by the time limit stands.

Locks: the execution, then the gate, then other tasks. An addition holds the gate in share mode; what ends the gate
queues for it (lock_gates.sql). A transaction that adds to several executions does so in id order: then no two of
them, and what ends their gates, wait for each other in a circle.
"""

from collections.abc import Iterable
from datetime import timedelta

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from harbor_refresh.executions.attached.attachment import is_attached
from harbor_refresh.executions.attached.ownership import Operation, refuse_if_attached
from harbor_refresh.executions.database import run
from harbor_refresh.executions.errors import NoSuchExecution
from harbor_refresh.executions.lifecycle import links
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.models import Execution, Gate, Task
from harbor_refresh.executions.news import signals
from harbor_refresh.executions.status import Status

#: Gates that one pass ends in one transaction.
PAGE = 1_000
CLOSED = "closed"
PASSED = "its stop was lifted"
OVERDUE = "it was not closed within its time limit, so tasks may be missing"


def make(execution: Execution, seconds: float) -> None:
    """Make the gate of this execution, with its time limit. The caller's transaction has made the execution."""
    closes_at = Now() + timedelta(seconds=seconds)
    Gate.objects.create(execution=execution, task_id=links.running_task(execution).pk, closes_at=closes_at)


def close(execution_id: int) -> bool:
    """End the gate: nothing is added any more, and the execution ends with its tasks. False if the gate has ended
    already, or the execution has none. Waits for additions that have begun, and those that come later are refused.
    """
    refuse_if_attached(Operation.CREATE)
    with transaction.atomic():
        if not run("locks/hold_execution", execution_id=execution_id):
            raise NoSuchExecution(execution_id)
        if not (locked := run("locks/lock_gates", execution_ids=[execution_id])):
            return False
        ended = report(Report(pk, Status.SUCCESS, revision, CLOSED) for pk, revision in locked)
        Gate.objects.filter(pk=execution_id).update(closes_at=None)
    return ended.applied == 1


def close_overdue() -> int:
    """End the gates whose time limit has passed; return how many. Those that an addition holds at this moment are
    left to the next pass: after the limit no addition begins, so they are free soon. Two processes at once: each
    ends those that it locked first."""
    if is_attached():
        return 0  # Harbor's executions have no gates, and its tasks may not be locked
    count = 0
    while True:
        with transaction.atomic():
            gates = Gate.objects.filter(closes_at__lte=Now())
            tasks = Task.objects.filter(pk__in=gates.values("task_id")).order_by("pk")
            overdue = list(tasks.select_for_update(no_key=True, skip_locked=True)[:PAGE])
            if not overdue:
                return count
            ended = report(Report(one.pk, Status.ERROR, one.status_revision, OVERDUE) for one in overdue)
            Gate.objects.filter(pk__in=[one.execution_id for one in overdue]).update(closes_at=None)
        if ended.execution_ids:
            signals.closed_overdue.send(sender=close_overdue, execution_ids=ended.execution_ids)
        count += ended.applied


def stopped(execution_ids: Iterable[int]) -> QuerySet[Task]:
    """Return the gates of these executions that a stop has ended."""
    gates = Gate.objects.filter(pk__in=list(execution_ids)).values("task_id")
    return Task.objects.filter(pk__in=gates, status=Status.STOPPED)


def pass_stopped(execution_ids: Iterable[int]) -> None:
    """Make the gates of these executions that were stopped a Success, each in a new revision. The caller has
    locked the executions, so no stop comes between."""
    report(Report(task.pk, Status.SUCCESS, task.status_revision + 1, PASSED) for task in stopped(execution_ids))
