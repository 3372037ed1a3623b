"""The rows that beat follows. Taken out again only by hand: an administrator may have made them theirs."""

from typing import Any

from django.db import migrations

from tasks.schedule import create_rows


def create(apps: Any, schema_editor: Any) -> None:
    create_rows(
        apps.get_model("django_celery_beat", "IntervalSchedule"),
        apps.get_model("django_celery_beat", "PeriodicTask"),
    )


class Migration(migrations.Migration):
    dependencies = [
        ("harbor_tasks", "0001_initial"),
        ("django_celery_beat", "0019_alter_periodictasks_options"),
    ]
    operations = [migrations.RunPython(create, migrations.RunPython.noop)]
