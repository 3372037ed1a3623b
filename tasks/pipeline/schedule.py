"""Beat's rows. Each `migrate` and each start of beat creates those that are missing. An administrator may edit
them, and disables a row that is not wanted: a deleted row comes back.

Only one interval is a setting, because it is Harbor's: EXECUTION_STATUS_REFRESH_INTERVAL_SECONDS. If it is set,
beat writes it to its row at each start. The other rows stay as the administrator wrote them.

A project without django-celery-beat has no rows: broker/celery_app.py puts the same schedule into its Celery app.
"""

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import connection

from harbor_refresh.executions.conf.declarations import is_set
from harbor_refresh.tasks.conf import DECLARED, refresh_settings

#: The app whose rows they are.
BEAT = "django_celery_beat"


def has_rows() -> bool:
    """Whether the schedule is in the database. It is asked while the registry of apps is not filled yet, too."""
    return any(name.split(".")[0] == BEAT for name in settings.INSTALLED_APPS)


@dataclass(frozen=True)
class Planned:
    name: str
    task: str
    every: float
    description: str

    @property
    def seconds(self) -> float:
        interval = refresh_settings().interval
        return interval if self is CLAIM and interval > 0 else self.every


CLAIM = Planned(
    "Claim batches",
    "tasks.claim_batch",
    30.0,
    "The net beneath the wake-ups: claims executions that wait and fans them out over the workers.",
)
ROWS = (
    CLAIM,
    Planned("Recover stale claims", "tasks.recover_stale", 5.0, "Gives back what dead nodes had claimed."),
    Planned(
        "Reconcile",
        "tasks.reconcile",
        60.0,
        "Finds executions whose status differs from their tasks, and marks them.",
    ),
    Planned(
        "Reap jobs",
        "tasks.reap",
        3_600.0,
        "Sends the reports of jobs again that a hook has not taken, and fails jobs that stay silent.",
    ),
    Planned(
        "Deliver",
        "tasks.deliver",
        30.0,
        "The net beneath the wake-ups: tells webhooks and handlers of status changes.",
    ),
    Planned("Sweep", "tasks.sweep", 86_400.0, "Deletes old executions and other old rows."),
    Planned(
        "Sample", "tasks.sample", 10.0, "Writes down the state of the service, for the charts of the dashboard."
    ),
)


def as_interval(seconds: float) -> dict[str, Any]:
    if seconds == int(seconds):
        return {"every": int(seconds), "period": "seconds"}
    return {"every": round(seconds * 1_000_000), "period": "microseconds"}


def _interval(seconds: float) -> Any:
    from django_celery_beat.models import IntervalSchedule

    rows: Any = IntervalSchedule.objects
    values = as_interval(seconds)  # an administrator may have created it twice
    return rows.filter(**values).order_by("pk").first() or rows.create(**values)


def restore_rows(**_: Any) -> None:
    """Create the missing rows, after a migration and before beat reads its schedule. If another process creates a
    row at this moment, that one stays."""
    if not has_rows():
        return
    from django_celery_beat.models import PeriodicTask, PeriodicTasks

    if PeriodicTask._meta.db_table not in connection.introspection.table_names():
        return  # a migration backwards, to before beat
    there = set(PeriodicTask.objects.values_list("name", flat=True))
    missing = [
        PeriodicTask(name=row.name, task=row.task, interval=_interval(row.seconds), description=row.description)
        for row in ROWS
        if row.name not in there
    ]
    PeriodicTask.objects.bulk_create(missing, ignore_conflicts=True)
    if missing:
        PeriodicTasks.update_changed()  # type: ignore[no-untyped-call]  # a beat that runs reads its rows again


def follow_setting(**_: Any) -> None:
    """Write the interval that is set to its row."""
    conf = refresh_settings()
    if not has_rows() or conf.in_process or not is_set(DECLARED["interval"]):
        return
    from django_celery_beat.models import PeriodicTask, PeriodicTasks

    interval = _interval(conf.interval)
    rows: Any = PeriodicTask.objects.filter(name=CLAIM.name).exclude(interval=interval)
    if rows.update(interval=interval, crontab=None, solar=None, clocked=None):
        PeriodicTasks.update_changed()  # type: ignore[no-untyped-call]  # a beat that runs reads its rows again


def interval_of(name: str) -> float:
    """Return the seconds between two of this Celery task: those of its row, or else our own."""
    if has_rows():
        from django_celery_beat.models import PeriodicTask

        if found := PeriodicTask.objects.filter(task=name, interval__isnull=False).first():
            return float(found.interval.schedule.run_every.total_seconds())
    return next(row.seconds for row in ROWS if row.task == name)
