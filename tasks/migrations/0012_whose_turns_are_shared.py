"""The terms of an execution say whose turns its jobs share, and jobs with a limit take turns with others."""

from django.db import migrations, models

from harbor_refresh.executions.sql import text


class Migration(migrations.Migration):
    dependencies = [
        ("harbor_tasks", "0011_ends_of_many"),
    ]

    operations = [
        migrations.RunSQL("SET LOCAL lock_timeout = '2s'", migrations.RunSQL.noop),
        migrations.AddField(
            model_name="terms",
            name="tenant",
            field=models.CharField(db_default="", default="", max_length=200),
        ),
        migrations.RunSQL(text("harbor_refresh.tasks.jobs", "schema/admit_function"), migrations.RunSQL.noop),
    ]
