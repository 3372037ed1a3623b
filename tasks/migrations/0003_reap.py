"""The row of the reaper."""

from typing import Any

from django.db import migrations

from tasks.schedule import create_rows


def create(apps: Any, schema_editor: Any) -> None:
    create_rows(
        apps.get_model("django_celery_beat", "IntervalSchedule"),
        apps.get_model("django_celery_beat", "PeriodicTask"),
        "Reap jobs",
    )


class Migration(migrations.Migration):
    dependencies = [("tasks", "0002_tracked_execution")]
    operations = [migrations.RunPython(create, migrations.RunPython.noop)]
