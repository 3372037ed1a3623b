"""Jobs that have expired use up no rate."""

from django.db import migrations

from harbor_refresh.executions.sql import text


class Migration(migrations.Migration):
    dependencies = [
        ("harbor_tasks", "0013_due_by_queue"),
    ]

    operations = [
        migrations.RunSQL("SET LOCAL lock_timeout = '2s'", migrations.RunSQL.noop),
        migrations.RunSQL(text("harbor_refresh.tasks.jobs", "schema/admit_function"), migrations.RunSQL.noop),
    ]
