"""Beat's rows. The migration creates them; an administrator may edit them.

An interval that is set in the environment is written to its row whenever beat starts, so the environment
is the master of what it names; an interval it does not name is the administrator's.
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
        "Compares the jobs in progress with what has landed in the database, and settles what differs.",
    ),
)


def as_interval(seconds: float) -> dict[str, Any]:
    """Whole seconds where possible, so that the admin shows what a person would write."""
    if seconds == int(seconds):
        return {"every": int(seconds), "period": "seconds"}
    return {"every": round(seconds * 1_000_000), "period": "microseconds"}


def _interval(model: Any, seconds: float) -> Any:
    """The first of that length: nothing keeps an administrator from making two of them."""
    values = as_interval(seconds)
    return model.objects.filter(**values).order_by("pk").first() or model.objects.create(**values)


def create_rows(interval_model: Any, task_model: Any) -> None:
    """Create the rows that are missing. A row that is there is an administrator's."""
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
