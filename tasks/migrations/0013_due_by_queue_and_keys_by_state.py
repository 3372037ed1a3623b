"""Jobs whose time has come are found by queue; a unique job has its key until it has ended; a clock that goes back
holds up no limit; and a begin says whether the job has expired. It locks nothing for long, and may run again.

What workers of the release before use stays: the column `holds_key` and the function `execution_begin_job`.
"""

from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models
from django.db.models import Q

from harbor_refresh.executions.sql import text

JOBS = "harbor_refresh.tasks.jobs"
KEY = models.UniqueConstraint(
    fields=["unique_key"], condition=Q(unique_key__isnull=False) & ~Q(state="ended"), name="job_unique"
)


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("harbor_tasks", "0012_whose_turns_are_shared"),
    ]

    operations = [
        # an index waits for the transactions that are older
        migrations.RunSQL("SET lock_timeout = '1min'", migrations.RunSQL.noop),
        migrations.RunSQL("DROP INDEX CONCURRENTLY IF EXISTS job_due", migrations.RunSQL.noop),
        AddIndexConcurrently(
            "job",
            models.Index(
                fields=["queue", "not_before"],
                name="job_due",
                condition=Q(state="waiting", waits_for=0, not_before__isnull=False),
            ),
        ),
        RemoveIndexConcurrently("job", "job_later"),
        migrations.RunSQL("DROP INDEX CONCURRENTLY IF EXISTS job_key", migrations.RunSQL.noop),
        migrations.RunSQL(
            "CREATE UNIQUE INDEX CONCURRENTLY job_key ON execution_job (unique_key)"
            " WHERE unique_key IS NOT NULL AND NOT (state = 'ended')",
            "DROP INDEX CONCURRENTLY IF EXISTS job_key",
            state_operations=[
                migrations.RemoveConstraint("job", "job_unique"),
                migrations.AddConstraint("job", KEY),
            ],
        ),
        migrations.RunSQL(
            "DROP INDEX CONCURRENTLY IF EXISTS job_unique",
            "CREATE UNIQUE INDEX CONCURRENTLY job_unique ON execution_job (unique_key) WHERE holds_key",
        ),
        migrations.RunSQL("ALTER INDEX job_key RENAME TO job_unique", "ALTER INDEX job_unique RENAME TO job_key"),
        migrations.RunSQL(
            "ALTER TABLE execution_job ALTER COLUMN holds_key SET DEFAULT FALSE",
            "ALTER TABLE execution_job ALTER COLUMN holds_key DROP DEFAULT",
            state_operations=[migrations.RemoveField("job", "holds_key")],
        ),
        migrations.RunSQL(text(JOBS, "schema/admit_function"), migrations.RunSQL.noop),
        migrations.RunSQL(text(JOBS, "schema/begin_function"), "DROP FUNCTION IF EXISTS execution_begin_run"),
        migrations.RunSQL("RESET lock_timeout", migrations.RunSQL.noop),
    ]
