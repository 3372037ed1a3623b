"""The row of the sweep, for a database whose other rows exist already."""

from typing import Any

from django.db import migrations

from tasks.schedule import create_rows


def create(apps: Any, schema_editor: Any) -> None:
    create_rows(
        apps.get_model("django_celery_beat", "IntervalSchedule"),
        apps.get_model("django_celery_beat", "PeriodicTask"),
        "Sweep",
    )


class Migration(migrations.Migration):
    dependencies = [("harbor_tasks", "0002_schedule")]
    operations = [migrations.RunPython(create, migrations.RunPython.noop)]
