"""Beat's schedule during a pass with Celery: as in a system that has run for a while; restored afterwards.

With a fresh schedule beat sends everything at once, reconcile too, which then reads all rows while they are being
refreshed. That happens only in the first minute of an installation.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.utils.timezone import now
from django_celery_beat.models import IntervalSchedule, PeriodicTask


@contextmanager
def running_schedule(*, reconcile: bool = True, recover_every: int = 5) -> Iterator[None]:
    """Set every task as run just now. Without `reconcile`, disable the task that looks for drift. `recover_every`:
    the seconds between two looks for claims of dead nodes."""
    tasks = PeriodicTask.objects.filter(task__startswith="tasks.")
    rows: list[Any] = list(tasks.values("pk", "enabled", "interval_id", "last_run_at"))
    tasks.update(last_run_at=now())
    if not reconcile:
        tasks.filter(task="tasks.reconcile").update(enabled=False)
    interval, _ = IntervalSchedule.objects.get_or_create(every=recover_every, period="seconds")
    tasks.filter(task="tasks.recover_stale").update(interval=interval)
    try:
        yield
    finally:
        for row in rows:
            tasks.filter(pk=row.pop("pk")).update(**row)
