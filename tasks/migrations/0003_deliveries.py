"""The row by which beat starts the deliverer."""

from typing import Any

from django.db import migrations

from tasks.schedule import create_rows


def create(apps: Any, schema_editor: Any) -> None:
    create_rows(
        apps.get_model("django_celery_beat", "IntervalSchedule"),
        apps.get_model("django_celery_beat", "PeriodicTask"),
        only="tasks.deliver",
    )


class Migration(migrations.Migration):
    dependencies = [("harbor_tasks", "0002_schedule")]
    operations = [migrations.RunPython(create, migrations.RunPython.noop)]
