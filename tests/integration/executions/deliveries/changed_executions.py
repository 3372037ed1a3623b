"""Executions whose status changed, and clocks that were moved."""

from datetime import timedelta
from typing import Any

from django.db.models import F

from harbor_refresh.executions.lifecycle.creation import NewExecution, NewTask
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.models import Delivery, Execution, Subscription, Task
from harbor_refresh.executions.news.deliveries.deliverer import due_handlers, run_handler, write_deliveries
from tests.created import create_many


def ended(count: int = 1, *, vendor: str = "REPLICATION", status: str = "Success", **new: Any) -> list[Execution]:
    """Create executions of one task each, that have ended."""
    made = create_many(NewExecution(vendor, tasks=[NewTask()], **new) for _ in range(count))
    end(made, status, 1)
    return made


def end(executions: list[Execution], status: str, revision: int, message: str | None = None) -> None:
    ids = [one.pk for one in executions]
    tasks = Task.objects.filter(execution_id__in=ids).values_list("pk", flat=True)
    report([Report(pk, status, revision, message) for pk in tasks])
    refresh(ids)


def rerun(executions: list[Execution], revision: int, status: str = "Success") -> None:
    """Run the tasks once more: two changes, if the status is refreshed in between."""
    end(executions, "Running", revision)
    end(executions, status, revision)


def move_clock(**by: float) -> None:
    """Let time pass for all that deliveries and circuits know of it."""
    delta = timedelta(**by)
    Delivery.objects.filter(state="pending").update(
        next_at=F("next_at") - delta, created_at=F("created_at") - delta
    )
    Subscription.objects.filter(failures__gt=0).update(failing_since=F("failing_since") - delta)
    Subscription.objects.filter(retry_at__isnull=False).update(retry_at=F("retry_at") - delta)


def tell() -> None:
    """Write what is due and run the handlers that have something to do."""
    write_deliveries()
    for subscription_id in due_handlers():
        while run_handler(subscription_id):
            pass


def states(**only: Any) -> dict[str, int]:
    counts: dict[str, int] = {}
    for state in Delivery.objects.filter(**only).values_list("state", flat=True):
        counts[state] = counts.get(state, 0) + 1
    return counts
