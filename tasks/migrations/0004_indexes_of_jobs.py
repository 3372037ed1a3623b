"""The indexes of jobs on rows, which lock nothing. It may run again: what was left half made is made anew."""

from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently, ValidateConstraint
from django.db import migrations, models
from django.db.models import Q

INDEXES = (
    models.Index(
        fields=["queue", "priority", "task"],
        name="job_ready",
        condition=Q(state="waiting", unmet=False, not_before=None),
    ),
    models.Index(
        fields=["not_before"],
        name="job_later",
        condition=Q(state="waiting", unmet=False, not_before__isnull=False),
    ),
    models.Index(fields=["task"], name="job_unmet", condition=Q(state="waiting", unmet=True)),
    models.Index(fields=["queue", "sent_at"], name="job_sent", condition=Q(state="sent")),
    models.Index(fields=["node", "process"], name="job_running", condition=Q(state="running")),
    models.Index(fields=["task"], name="job_unreported", condition=Q(report__isnull=False)),
)
CONSTRAINTS = ("job_begins_as_often_as_it_may", "job_state_known", "job_runs_in_a_process", "job_sent_at")


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("harbor_tasks", "0003_jobs_are_taken_over"),
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
        *(ValidateConstraint("job", name) for name in CONSTRAINTS),
        RemoveIndexConcurrently("job", "job_unpublished"),
        RemoveIndexConcurrently("job", "job_waits"),
        migrations.RunSQL("RESET lock_timeout", migrations.RunSQL.noop),
    ]
