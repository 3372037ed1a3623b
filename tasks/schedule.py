"""Beat's rows. The migration creates them; an administrator may edit them.

An interval that is set in the environment is written to its row whenever beat starts, so the environment
is the master of what it names; an interval it does not name is the administrator's.
"""

from dataclasses import dataclass
from typing import Any

from django.conf import settings

from tasks.conf import DECLARED

DEFAULTS = {one.name: one.default for one in DECLARED.values()}


@dataclass(frozen=True)
class Scheduled:
    name: str
    task: str
    setting: str
    description: str

    @property
    def seconds(self) -> float:
        return float(getattr(settings, self.setting, DEFAULTS[self.setting]))


ROWS = (
    Scheduled(
        "Claim batches",
        "tasks.claim_batch",
        "EXECUTION_STATUS_REFRESH_INTERVAL_SECONDS",
        "The net beneath the wake-ups: claims executions that wait and fans them out over the workers.",
    ),
    Scheduled(
        "Recover stale claims",
        "tasks.recover_stale",
        "REFRESH_RECOVER_INTERVAL_SECONDS",
        "Gives back what dead nodes had claimed.",
    ),
    Scheduled(
        "Reconcile",
        "tasks.reconcile",
        "REFRESH_RECONCILE_INTERVAL_SECONDS",
        "Finds executions whose status differs from their tasks, and marks them.",
    ),
    Scheduled(
        "Reap jobs",
        "tasks.reap",
        "REFRESH_REAP_INTERVAL_SECONDS",
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


def create_rows(interval_model: Any, task_model: Any, *names: str) -> None:
    """All of them, or those of these names. A row that is there is an administrator's."""
    for row in ROWS:
        if names and row.name not in names:
            continue
        seconds = row.seconds
        interval = _interval(interval_model, seconds if seconds > 0 else 30)
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
