"""The indexes of jobs that wait for others, which lock nothing. It may run again: what was left half made is made
anew. That of the next jobs follows in 0009."""

from django.contrib.postgres.operations import AddIndexConcurrently, ValidateConstraint
from django.db import migrations, models
from django.db.models import Q

INDEXES = (
    models.Index(
        fields=["not_before"],
        name="job_later",
        condition=Q(state="waiting", waits_for=0, not_before__isnull=False),
    ),
    models.Index(fields=["task"], name="job_unmet", condition=Q(state="waiting", waits_for__gt=0)),
)


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("harbor_tasks", "0007_needs"),
    ]

    operations = [
        # an index waits for the transactions that are older
        migrations.RunSQL("SET lock_timeout = '1min'", migrations.RunSQL.noop),
        *(
            operation
            for index in INDEXES
            for operation in (
                migrations.RunSQL(f"DROP INDEX CONCURRENTLY IF EXISTS {index.name}", migrations.RunSQL.noop),
                AddIndexConcurrently("job", index),
            )
        ),
        ValidateConstraint("job", "job_result_of_a_run"),
        migrations.RunSQL("RESET lock_timeout", migrations.RunSQL.noop),
    ]
