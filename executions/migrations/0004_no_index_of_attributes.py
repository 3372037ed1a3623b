"""The list of the admin compares attributes with the newest executions, so no index has them. It may run again."""

from django.contrib.postgres.operations import RemoveIndexConcurrently
from django.db import migrations


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("harbor_executions", "0003_actions_are_executions"),
    ]

    operations = [
        # it waits for the transactions that are older
        migrations.RunSQL("SET lock_timeout = '1min'", migrations.RunSQL.noop),
        RemoveIndexConcurrently("execution", "execution_attributes"),
        migrations.RunSQL("RESET lock_timeout", migrations.RunSQL.noop),
    ]
