"""Beat's rows during a pass with Celery: as in a system that has run for a while, and as they were afterwards.

A beat over a fresh schedule sends everything at once, reconcile too, which then works through all the rows
while they are being refreshed. That is the first minute of an installation and none of the others.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from django.utils.timezone import now
from django_celery_beat.models import PeriodicTask


@contextmanager
def running_schedule(*, reconcile: bool = True) -> Iterator[None]:
    """`reconcile` False: nobody looks for drift meanwhile."""
    tasks = PeriodicTask.objects.filter(task__startswith="tasks.")
    rows = list(tasks.values("pk", "enabled", "interval_id", "last_run_at"))
    tasks.update(last_run_at=now())
    if not reconcile:
        tasks.filter(task="tasks.reconcile").update(enabled=False)
    try:
        yield
    finally:
        for row in rows:
            tasks.filter(pk=row.pop("pk")).update(**row)
