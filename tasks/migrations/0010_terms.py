"""What `start` is told about an execution as a whole, and when the process of a stopped run is killed."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Q

from harbor_refresh.executions.attached.attachment import is_attached
from harbor_refresh.executions.sql import text
from harbor_refresh.executions.status import MAX_VENDOR

JOBS = "harbor_refresh.tasks.jobs"


class Migration(migrations.Migration):
    dependencies = [
        ("harbor_executions", "0002_callbacks_of_failures"),
        ("harbor_tasks", "0009_limits_and_turns"),
    ]

    operations = [
        migrations.RunSQL("SET LOCAL lock_timeout = '2s'", migrations.RunSQL.noop),
        migrations.CreateModel(
            name="Terms",
            fields=[
                (
                    "execution",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="terms",
                        serialize=False,
                        to="harbor_executions.execution",
                    ),
                ),
                ("vendor_type", models.CharField(max_length=MAX_VENDOR)),
                ("once", models.CharField(max_length=255, null=True)),
                ("stops_on_failure", models.BooleanField(default=False)),
                ("tells_first_failure", models.BooleanField(default=False)),
                ("first_failed_at", models.DateTimeField(null=True)),
                ("deadline", models.DateTimeField(null=True)),
                ("is_over", models.BooleanField(default=False)),
            ],
            options={
                "db_table": "execution_terms",
                "default_permissions": (),
                "indexes": (
                    models.Index(
                        fields=["deadline"],
                        name="terms_deadline",
                        condition=Q(deadline__isnull=False, is_over=False),
                    ),
                ),
                "constraints": (
                    models.UniqueConstraint(
                        fields=["vendor_type", "once"], name="terms_once", condition=Q(once__isnull=False)
                    ),
                    models.CheckConstraint(name="terms_once_is_text", condition=~Q(once="")),
                ),
            },
        ),
        migrations.AddField("job", "kill_at", models.DateTimeField(null=True)),
        migrations.CreateModel(
            name="Failure",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("execution_id", models.BigIntegerField(verbose_name="execution")),
            ],
            options={"db_table": "execution_failure", "default_permissions": ()},
        ),
        # Harbor's executions have no terms, and its tables get neither constraints nor triggers of ours
        *(
            []
            if is_attached()
            else [
                migrations.RunSQL(text(JOBS, "schema/terms_go_with_their_executions"), migrations.RunSQL.noop),
                migrations.RunSQL(
                    text(JOBS, "schema/note_failures"), "DROP FUNCTION IF EXISTS execution_note_failure CASCADE"
                ),
            ]
        ),
    ]
