"""A callback may be called when a task has failed, and not at an end."""

from django.db import migrations, models
from django.db.models import Q

FINAL = ["Stopped", "Error", "Success"]


class Migration(migrations.Migration):
    dependencies = [
        ("harbor_executions", "0001_initial"),
    ]

    operations = [
        migrations.RunSQL("SET LOCAL lock_timeout = '2s'", migrations.RunSQL.noop),
        migrations.RemoveConstraint("callback", "callback_is_of_an_end"),
        migrations.AddConstraint(
            "callback",
            models.CheckConstraint(name="callback_is_of_an_end", condition=Q(statuses__contained_by=FINAL)),
        ),
    ]
