"""Beat's rows. The migration creates them, and an administrator may edit them.

Whenever beat starts, it writes each interval that is set in the environment to its row. An interval that is not
set there stays as the administrator wrote it.
"""

from dataclasses import dataclass
from typing import Any

from django.conf import settings

from tasks.conf import DECLARED, refresh_settings


@dataclass(frozen=True)
class Scheduled:
    name: str
    task: str
    field: str
    description: str

    @property
    def setting(self) -> str:
        return DECLARED[self.field].name

    @property
    def seconds(self) -> float:
        return float(getattr(refresh_settings(), self.field))


ROWS = (
    Scheduled(
        "Claim batches",
        "tasks.claim_batch",
        "interval",
        "The net beneath the wake-ups: claims executions that wait and fans them out over the workers.",
    ),
    Scheduled(
        "Recover stale claims",
        "tasks.recover_stale",
        "recover_interval",
        "Gives back what dead nodes had claimed.",
    ),
    Scheduled(
        "Reconcile",
        "tasks.reconcile",
        "reconcile_interval",
        "Finds executions whose status differs from their tasks, and marks them.",
    ),
    Scheduled(
        "Reap jobs",
        "tasks.reap",
        "reap_interval",
        "Compares the jobs in progress with their tasks, and settles what differs.",
    ),
    Scheduled(
        "Deliver",
        "tasks.deliver",
        "deliver_interval",
        "The net beneath the wake-ups: tells webhooks and handlers of status changes.",
    ),
    Scheduled(
        "Sweep",
        "tasks.sweep",
        "sweep_interval",
        "Deletes old executions and other old rows, and refreshes executions that dangle.",
    ),
)


def as_interval(seconds: float) -> dict[str, Any]:
    """Use whole seconds where possible, so that the admin shows what a person would write."""
    if seconds == int(seconds):
        return {"every": int(seconds), "period": "seconds"}
    return {"every": round(seconds * 1_000_000), "period": "microseconds"}


def _interval(model: Any, seconds: float) -> Any:
    """Get or create the interval. If an administrator has created it twice, get the first."""
    values = as_interval(seconds)
    return model.objects.filter(**values).order_by("pk").first() or model.objects.create(**values)


def create_rows(interval_model: Any, task_model: Any) -> None:
    """Create the missing rows. An existing row stays as it is, because an administrator may have edited it."""
    for row in ROWS:
        interval = _interval(interval_model, row.seconds if row.seconds > 0 else 30)
        task_model.objects.get_or_create(
            name=row.name,
            defaults={"task": row.task, "interval": interval, "description": row.description},
        )


def follow_environment(**_: Any) -> None:
    from django_celery_beat.models import IntervalSchedule, PeriodicTask

    for row in ROWS:
        seconds = row.seconds
        if row.setting not in getattr(settings, "SET_IN_ENVIRONMENT", ()) or seconds <= 0:
            continue
        interval = _interval(IntervalSchedule, seconds)
        for task in PeriodicTask.objects.filter(name=row.name).exclude(interval=interval):
            task.interval, task.crontab, task.solar, task.clocked = interval, None, None, None
            task.save()
