"""What `start` is told about an execution as a whole."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Q

from harbor_refresh.executions.attached.attachment import is_attached
from harbor_refresh.executions.sql import text
from harbor_refresh.executions.status import MAX_VENDOR

JOBS = "harbor_refresh.tasks.jobs"


class Migration(migrations.Migration):
    dependencies = [
        ("harbor_executions", "0001_initial"),
        ("harbor_tasks", "0006_busy_slots"),
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
            ],
            options={
                "db_table": "execution_terms",
                "default_permissions": (),
                "constraints": (
                    models.UniqueConstraint(
                        fields=["vendor_type", "once"], name="terms_once", condition=Q(once__isnull=False)
                    ),
                    models.CheckConstraint(name="terms_once_is_text", condition=~Q(once="")),
                ),
            },
        ),
        # Harbor's executions have no terms, and nothing of ours is to be in the way of its deletes
        *(
            []
            if is_attached()
            else [migrations.RunSQL(text(JOBS, "terms_go_with_their_executions"), migrations.RunSQL.noop)]
        ),
    ]
