"""A job may need several others: what it follows becomes a row, and a result stays with the job that left it.

No worker may run: the functions that begin and end jobs are replaced. The indexes follow in 0008.
"""

import django.db.models.deletion
from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models
from django.db.models import F, Q

from harbor_refresh.executions.sql import text

JOBS, HERE = "harbor_refresh.tasks.jobs", "harbor_refresh.tasks.migrations"
#: What each job followed, and what it was handed on.
MOVE = """
INSERT INTO execution_need (job_id, needed_id, place, even_if_failed, is_met)
SELECT task_id, follows_id, 0, FALSE, NOT unmet FROM execution_job WHERE follows_id IS NOT NULL;
UPDATE execution_job
SET takes = CASE WHEN takes_result THEN 'result' ELSE 'nothing' END, waits_for = unmet::int
WHERE follows_id IS NOT NULL;
UPDATE execution_job b
SET result = f.handed_on, result_revision = f.handed_on_revision
FROM execution_job f
WHERE f.follows_id = b.task_id AND f.handed_on_revision IS NOT NULL
"""
#: The checks of the rows that were moved come before the columns go.
CHECK_NOW = "SET CONSTRAINTS ALL IMMEDIATE"
GONE = ("follows", "takes_result", "handed_on", "handed_on_revision", "unmet")
INDEXES = ("job_ready", "job_later", "job_unmet", "job_follows")


class Migration(migrations.Migration):
    dependencies = [
        ("harbor_tasks", "0006_busy_slots"),
    ]

    operations = [
        migrations.RunSQL("SET LOCAL lock_timeout = '2s'", migrations.RunSQL.noop),
        migrations.CreateModel(
            name="Need",
            fields=[
                ("pk", models.CompositePrimaryKey("job_id", "needed_id", primary_key=True, serialize=False)),
                (
                    "job",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="needs",
                        to="harbor_tasks.job",
                    ),
                ),
                (
                    "needed",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.RESTRICT,
                        related_name="needed_by",
                        to="harbor_tasks.job",
                    ),
                ),
                ("place", models.PositiveIntegerField()),
                ("even_if_failed", models.BooleanField(default=False)),
                ("is_met", models.BooleanField(default=False)),
            ],
            options={
                "db_table": "execution_need",
                "default_permissions": (),
                "constraints": [
                    models.CheckConstraint(condition=Q(needed__lt=F("job")), name="need_of_an_earlier_job")
                ],
            },
        ),
        migrations.RunSQL(text(JOBS, "schema/needs_go_with_their_jobs"), migrations.RunSQL.noop),
        migrations.AddField(
            "job",
            "takes",
            models.CharField(
                choices=[("nothing", "Nothing"), ("result", "Result"), ("list", "List")],
                db_default="nothing",
                default="nothing",
                max_length=7,
            ),
        ),
        migrations.AddField("job", "result", models.JSONField(null=True)),
        migrations.AddField("job", "result_revision", models.BigIntegerField(null=True)),
        migrations.AddField("job", "waits_for", models.PositiveIntegerField(db_default=0, default=0)),
        migrations.RunSQL(MOVE, migrations.RunSQL.noop),
        migrations.RunSQL(CHECK_NOW, migrations.RunSQL.noop),
        migrations.RunSQL("DROP FUNCTION IF EXISTS execution_end_job CASCADE", text(HERE, "end_job_of_0002")),
        migrations.RunSQL("DROP FUNCTION execution_begin_job", text(HERE, "begin_job_of_0002")),
        migrations.RunSQL(
            text(JOBS, "schema/end_with_their_tasks"), "DROP FUNCTION IF EXISTS execution_end_jobs CASCADE"
        ),
        migrations.RunSQL(text(HERE, "begin_job_of_0007"), "DROP FUNCTION execution_begin_job"),
        # the database drops them with their columns
        migrations.SeparateDatabaseAndState(
            state_operations=[migrations.RemoveIndex("job", name) for name in INDEXES]
        ),
        migrations.RemoveConstraint("job", "job_handed_on_by_a_run"),
        *(migrations.RemoveField("job", name) for name in GONE),
        AddConstraintNotValid(
            "job",
            models.CheckConstraint(
                condition=Q(result=None) | Q(result_revision__isnull=False), name="job_result_of_a_run"
            ),
        ),
    ]
