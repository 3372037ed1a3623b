from django.db import migrations

from executions.sql import statement


class Migration(migrations.Migration):
    dependencies = [("executions", "0001_initial")]
    operations = [
        migrations.RunSQL(statement("execution_rollup"), "DROP VIEW execution_rollup"),
        migrations.RunSQL(statement("room_for_updates"), "ALTER TABLE execution RESET (fillfactor)"),
    ]
