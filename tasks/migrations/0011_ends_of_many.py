"""The end of many tasks in one statement takes a time that grows with their number, and not with its square."""

from django.db import migrations

from harbor_refresh.executions.sql import text

# without the trigger, which is as it was, and would lock the table
FUNCTION = text("harbor_refresh.tasks.jobs", "schema/end_with_their_tasks").partition("CREATE OR REPLACE TRIGGER")[
    0
]


class Migration(migrations.Migration):
    dependencies = [
        ("harbor_tasks", "0010_terms"),
    ]

    operations = [
        migrations.RunSQL("SET LOCAL lock_timeout = '2s'", migrations.RunSQL.noop),
        migrations.RunSQL(FUNCTION, migrations.RunSQL.noop),
    ]
