"""Jobs whose time has come are found by queue, and a clock that goes back holds up no limit. It locks nothing for
long, and may run again."""

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
        migrations.RunSQL(text(JOBS, "schema/admit_function"), migrations.RunSQL.noop),
        migrations.RunSQL("RESET lock_timeout", migrations.RunSQL.noop),
    ]
