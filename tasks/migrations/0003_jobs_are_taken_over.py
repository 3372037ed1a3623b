"""The jobs of the release before 0002 are taken over, some at a time. It may run again."""

from typing import Any

from django.db import migrations

from harbor_refresh.executions.database import Statements
from harbor_refresh.tasks.jobs.starting.job_rows import destination

OPTIONS = ("queue", "routing_key")
PAGE = 10_000
run = Statements("harbor_refresh.tasks.migrations")


def take_over(apps: Any, schema_editor: Any) -> None:
    left = apps.get_model("harbor_tasks", "Job").objects.filter(queue="").order_by("pk")
    kinds = list(left.order_by().values_list("name", *(f"options__{one}" for one in OPTIONS)).distinct())
    words = {
        "names": [name for name, _, _ in kinds],
        "queues": [queue for _, queue, _ in kinds],
        "keys": [key for _, _, key in kinds],
        "routed": [queue_of(*kind) for kind in kinds],
    }
    last = 0
    while first := left.filter(pk__gt=last).values_list("pk", flat=True).first():
        last = first + PAGE
        run("take_over_jobs", **words, first=first, last=last)
    if kinds:
        run("end_left_in_chains")


def queue_of(name: str, *values: str | None) -> str:
    """Return the queue to which Celery routes jobs of this kind. Its route may be gone, if they are old."""
    options = {option: value for option, value in zip(OPTIONS, values, strict=True) if value}
    try:
        return destination(name, options)[0]
    except Exception:
        return options.get("queue") or name


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("harbor_tasks", "0002_jobs_on_rows"),
    ]

    operations = [
        migrations.RunPython(take_over, migrations.RunPython.noop),
    ]
