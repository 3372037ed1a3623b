"""The columns, the nodes and the functions of jobs on rows. The rows and the indexes follow in 0003."""

from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models
from django.db.models import F, Q
from django.db.models.functions import Now

from harbor_refresh.executions.sql import text

HERE = "harbor_refresh.tasks.migrations"


class Migration(migrations.Migration):
    dependencies = [
        ("harbor_tasks", "0001_initial"),
    ]

    operations = [
        migrations.RunSQL("SET LOCAL lock_timeout = '2s'", migrations.RunSQL.noop),
        migrations.CreateModel(
            name="Node",
            fields=[
                ("id", models.BigIntegerField(primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=255)),
                ("slots", models.PositiveIntegerField()),
                ("queues", models.JSONField()),
                ("started_at", models.DateTimeField(db_default=Now())),
                ("heard_at", models.DateTimeField(db_default=Now())),
                ("suspected_at", models.DateTimeField(null=True)),
                ("began", models.JSONField(db_default={})),
            ],
            options={"db_table": "execution_node", "default_permissions": ("view",)},
        ),
        migrations.AddField("job", "queue", models.CharField(default="", max_length=255), preserve_default=False),
        migrations.AddField("job", "priority", models.SmallIntegerField(default=0)),
        # until 0003 has looked at the rows, none is sent
        migrations.AddField("job", "state", models.CharField(default="ended", max_length=8)),
        migrations.AlterField(
            "job",
            "state",
            models.CharField(
                choices=[("waiting", "Waiting"), ("sent", "Sent"), ("running", "Running"), ("ended", "Ended")],
                default="waiting",
                max_length=8,
            ),
        ),
        migrations.AddField("job", "run", models.IntegerField(default=0)),
        migrations.AddField("job", "revision", models.BigIntegerField(default=0)),
        migrations.AddField("job", "unmet", models.BooleanField(default=False)),
        migrations.AddField("job", "not_before", models.DateTimeField(null=True)),
        migrations.AddField("job", "retries", models.IntegerField(default=0)),
        migrations.AddField("job", "sent_at", models.DateTimeField(null=True)),
        migrations.AddField("job", "resent", models.SmallIntegerField(default=0)),
        migrations.AddField("job", "node", models.BigIntegerField(null=True)),
        migrations.AddField("job", "process", models.IntegerField(null=True)),
        migrations.AddField("job", "begun_at", models.DateTimeField(null=True)),
        migrations.AddField("job", "heard_at", models.DateTimeField(null=True)),
        migrations.AddField("job", "check_in", models.JSONField(null=True)),
        migrations.AddField("job", "report", models.JSONField(null=True)),
        migrations.RemoveConstraint("job", "job_may_run"),
        AddConstraintNotValid(
            "job",
            models.CheckConstraint(
                condition=Q(max_attempts__gte=1, run__lte=F("runs_before") + F("max_attempts")),
                name="job_begins_as_often_as_it_may",
            ),
        ),
        AddConstraintNotValid(
            "job",
            models.CheckConstraint(
                condition=Q(state__in=["waiting", "sent", "running", "ended"]), name="job_state_known"
            ),
        ),
        AddConstraintNotValid(
            "job",
            models.CheckConstraint(
                condition=Q(state="running", node__isnull=False, process__isnull=False, run__gte=1)
                | (~Q(state="running") & Q(node=None, process=None)),
                name="job_runs_in_a_process",
            ),
        ),
        AddConstraintNotValid(
            "job",
            models.CheckConstraint(condition=~Q(state="sent") | Q(sent_at__isnull=False), name="job_sent_at"),
        ),
        migrations.RunSQL(text(HERE, "end_job_of_0002"), "DROP FUNCTION IF EXISTS execution_end_job CASCADE"),
        migrations.RunSQL(text(HERE, "begin_job_of_0002"), "DROP FUNCTION execution_begin_job"),
    ]
