"""Beat's rows. Each `migrate` and each start of beat creates those that are missing. An administrator may edit
them, and disables a row that is not wanted: a deleted row comes back.

Whenever beat starts, it writes each interval that is set (in the environment of the service, or in the settings of
a project) to its row. An interval that is not set stays as the administrator wrote it.

A project without django-celery-beat has no rows: tasks/host.py puts the same schedule into its Celery app.
"""

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import connection

from harbor_refresh.executions.declarations import is_service, key_of, of_project
from harbor_refresh.tasks.conf import DECLARED, refresh_settings

#: The app whose rows they are.
BEAT = "django_celery_beat"


def has_rows() -> bool:
    """Whether the schedule is in the database. It is asked while the registry of apps is not filled yet, too."""
    return any(name.split(".")[0] == BEAT for name in settings.INSTALLED_APPS)


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
    def is_set(self) -> bool:
        """Whether the environment of the service names it, or the settings of a project."""
        if is_service():
            return self.setting in getattr(settings, "SET_IN_ENVIRONMENT", ())
        return key_of(self.setting) in of_project()

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
    Scheduled(
        "Sample",
        "tasks.sample",
        "sample_interval",
        "Writes down the state of the service, for the charts of the dashboard.",
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


def create_rows(interval_model: Any, task_model: Any) -> bool:
    """Create the missing rows; return whether any was missing. An existing row stays as it is, because an
    administrator may have edited it. If another process creates a row at this moment, that one stays."""
    there = set(task_model.objects.values_list("name", flat=True))
    missing = [
        task_model(
            name=row.name,
            task=row.task,
            interval=_interval(interval_model, row.seconds if row.seconds > 0 else 30),
            description=row.description,
        )
        for row in ROWS
        if row.name not in there
    ]
    task_model.objects.bulk_create(missing, ignore_conflicts=True)
    return bool(missing)


#: The program needs the rows of these names.
NEEDED = frozenset(row.name for row in ROWS)


def restore_rows(**_: Any) -> None:
    """Create the missing rows, after a migration and before beat reads its schedule. Any number of processes may
    do it at once, because the name of a row is unique."""
    if not has_rows():
        return
    from django_celery_beat.models import IntervalSchedule, PeriodicTask, PeriodicTasks

    if PeriodicTask._meta.db_table not in connection.introspection.table_names():
        return  # a migration backwards, to before beat
    if create_rows(IntervalSchedule, PeriodicTask):
        PeriodicTasks.update_changed()  # type: ignore[no-untyped-call]  # a beat that runs reads its rows again


def follow_environment(**_: Any) -> None:
    if not has_rows():
        return
    from django_celery_beat.models import IntervalSchedule, PeriodicTask

    for row in ROWS:
        seconds = row.seconds
        if not row.is_set or seconds <= 0:
            continue
        interval = _interval(IntervalSchedule, seconds)
        rows: Any = PeriodicTask.objects.filter(name=row.name).exclude(interval=interval)
        for task in rows:
            task.interval, task.crontab, task.solar, task.clocked = interval, None, None, None
            task.save(update_fields=["interval", "crontab", "solar", "clocked"])
