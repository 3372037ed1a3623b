"""A callback may be called when a task has failed, and not at an end. Each operation is a transaction, so that no
table is locked while its rows are read; it may run again."""

from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations, models
from django.db.models import Q

NAME = "callback_is_of_an_end"
REPLACED = """
ALTER TABLE execution_callback
    DROP CONSTRAINT IF EXISTS callback_is_of_an_end,
    ADD CONSTRAINT callback_is_of_an_end
        CHECK (statuses <@ ARRAY['Stopped', 'Error', 'Success']::varchar(16)[]{}) NOT VALID
"""
FINAL = ["Stopped", "Error", "Success"]


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("harbor_executions", "0001_initial"),
    ]

    operations = [
        migrations.RunSQL("SET lock_timeout = '2s'", migrations.RunSQL.noop),
        migrations.RunSQL(
            REPLACED.replace("{}", ""),
            # callbacks of the first failure stay, and are never called by the release before
            REPLACED.replace("{}", " AND cardinality(statuses) >= 1"),
            state_operations=[
                migrations.RemoveConstraint("callback", NAME),
                migrations.AddConstraint(
                    "callback",
                    models.CheckConstraint(name=NAME, condition=Q(statuses__contained_by=FINAL)),
                ),
            ],
        ),
        ValidateConstraint("callback", NAME),
        migrations.RunSQL("RESET lock_timeout", migrations.RunSQL.noop),
    ]
