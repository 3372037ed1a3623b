"""Jobs whose time has come are found by queue; a clock that goes back holds up no limit; and a begin says whether
the job has expired. It locks nothing for long, and may run again.

What workers of the release before use stays: the function `execution_begin_job`.
"""

from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models
from django.db.models import Q

from harbor_refresh.executions.sql import text

JOBS = "harbor_refresh.tasks.jobs"


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("harbor_tasks", "0012_whose_turns_are_shared"),
    ]

    operations = [
        # an index waits for the transactions that are older
        migrations.RunSQL("SET lock_timeout = '1min'", "RESET lock_timeout"),
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
        migrations.RunSQL(text(JOBS, "schema/admit_function"), migrations.RunSQL.noop),
        migrations.RunSQL(text(JOBS, "schema/begin_function"), "DROP FUNCTION IF EXISTS execution_begin_run"),
        migrations.RunSQL("RESET lock_timeout", "SET lock_timeout = '1min'"),
    ]
