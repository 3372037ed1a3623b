"""An action on many executions is an execution itself. The entries of the log of actions keep their text."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("harbor_executions", "0002_callbacks_of_failures"),
    ]

    operations = [
        migrations.RunSQL("SET LOCAL lock_timeout = '2s'", migrations.RunSQL.noop),
        # the index goes with its column
        migrations.SeparateDatabaseAndState(
            state_operations=[migrations.RemoveIndex("auditentry", "audit_action")]
        ),
        migrations.RemoveField("auditentry", "action"),
        migrations.DeleteModel("Action"),
    ]
