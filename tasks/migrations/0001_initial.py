import uuid

import django.db.models.deletion
import django.db.models.expressions
import django.db.models.functions.datetime
from django.db import migrations, models

from harbor_refresh.executions.sql import text


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("harbor_executions", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="Sample",
            fields=[
                ("at", models.DateTimeField(primary_key=True, serialize=False)),
                ("backlog", models.BigIntegerField(null=True)),
                ("refreshed", models.BigIntegerField()),
                ("failed", models.BigIntegerField()),
                ("recovered", models.BigIntegerField()),
                ("latency", models.JSONField()),
            ],
            options={
                "db_table": "service_sample",
            },
        ),
        migrations.CreateModel(
            name="TrackedExecution",
            fields=[],
            options={
                "proxy": True,
                "indexes": [],
                "constraints": [],
            },
            bases=("harbor_executions.execution",),
        ),
        migrations.CreateModel(
            name="Event",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "minute", "kind", "subject", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("minute", models.DateTimeField()),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("node_died", "Node Died"),
                            ("recovered", "Recovered"),
                            ("jobs_recovered", "Jobs Recovered"),
                            ("drift", "Drift"),
                            ("quarantined", "Quarantined"),
                            ("released_from_quarantine", "Released From Quarantine"),
                            ("deliveries_died", "Deliveries Died"),
                        ],
                        max_length=32,
                    ),
                ),
                ("subject", models.CharField(db_default="", max_length=255)),
                ("count", models.BigIntegerField()),
                ("last_at", models.DateTimeField()),
            ],
            options={
                "db_table": "service_event",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "kind__in",
                                [
                                    "node_died",
                                    "recovered",
                                    "jobs_recovered",
                                    "drift",
                                    "quarantined",
                                    "released_from_quarantine",
                                    "deliveries_died",
                                ],
                            )
                        ),
                        name="event_kind_known",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Pause",
            fields=[
                ("queue", models.CharField(max_length=255, primary_key=True, serialize=False)),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("by", models.CharField(db_default="", max_length=150)),
                ("reason", models.CharField(db_default="", max_length=500)),
            ],
            options={
                "verbose_name": "pause of a queue",
                "verbose_name_plural": "queue",
                "db_table": "execution_pause",
                "default_permissions": ("view", "change"),
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("queue", ""), _negated=True), name="pause_names_a_queue"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="RedisMemory",
            fields=[
                ("id", models.SmallIntegerField(default=1, primary_key=True, serialize=False)),
                ("epoch", models.BigIntegerField(default=0)),
                ("sequence", models.BigIntegerField(default=0)),
                ("looked_up", models.BigIntegerField(default=0)),
                ("database", models.UUIDField(default=uuid.uuid4)),
                ("made_in", models.CharField(db_default="", default="", max_length=64)),
            ],
            options={
                "db_table": "execution_redis_memory",
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("id", 1)), name="redis_memory_is_one_row")
                ],
            },
        ),
        migrations.CreateModel(
            name="Watermark",
            fields=[
                ("id", models.SmallIntegerField(default=1, primary_key=True, serialize=False)),
                ("settled_before", models.DateTimeField()),
                ("last_pass_at", models.DateTimeField(null=True)),
                ("timeline", models.CharField(db_default="", max_length=8)),
                ("last_drifted", models.BigIntegerField(null=True)),
            ],
            options={
                "db_table": "execution_watermark",
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("id", 1)), name="watermark_is_one_row"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Job",
            fields=[
                (
                    "task",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="job",
                        serialize=False,
                        to="harbor_executions.task",
                    ),
                ),
                ("name", models.CharField(max_length=255)),
                ("args", models.JSONField(default=list)),
                ("kwargs", models.JSONField(default=dict)),
                ("arguments_revision", models.BigIntegerField(db_default=0, default=0)),
                ("options", models.JSONField(default=dict)),
                ("max_attempts", models.PositiveSmallIntegerField()),
                ("runs_before", models.PositiveIntegerField(default=0)),
                ("unique_key", models.CharField(max_length=64, null=True)),
                ("holds_key", models.BooleanField(default=False)),
                ("takes_result", models.BooleanField(default=False)),
                ("handed_on", models.JSONField(null=True)),
                ("handed_on_revision", models.BigIntegerField(null=True)),
                ("published_at", models.DateTimeField(null=True)),
                (
                    "follows",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.RESTRICT,
                        related_name="followers",
                        to="harbor_tasks.job",
                    ),
                ),
            ],
            options={
                "db_table": "execution_job",
                "indexes": [
                    models.Index(
                        condition=models.Q(
                            ("published_at__isnull", True),
                            models.Q(
                                ("follows__isnull", True), ("handed_on_revision__isnull", False), _connector="OR"
                            ),
                        ),
                        fields=["task"],
                        name="job_unpublished",
                    ),
                    models.Index(
                        django.db.models.expressions.CombinedExpression(
                            models.F("task_id"), "%%", models.Value(1009)
                        ),
                        models.F("task_id"),
                        condition=models.Q(("follows__isnull", False), ("published_at__isnull", True)),
                        include=("follows",),
                        name="job_waits",
                    ),
                    models.Index(
                        condition=models.Q(("follows__isnull", False)), fields=["follows"], name="job_follows"
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("holds_key", True)), fields=("unique_key",), name="job_unique"
                    ),
                    models.CheckConstraint(condition=models.Q(("max_attempts__gte", 1)), name="job_may_run"),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("handed_on__isnull", True), ("handed_on_revision__isnull", True)),
                            models.Q(
                                ("follows__isnull", False),
                                ("handed_on_revision__gte", 0),
                                ("handed_on_revision__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="job_handed_on_by_a_run",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="JobEnd",
            fields=[
                (
                    "job",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="kept_end",
                        serialize=False,
                        to="harbor_tasks.job",
                    ),
                ),
                ("revision", models.BigIntegerField()),
                ("result", models.JSONField(null=True)),
                ("why_not", models.TextField(db_default="")),
                ("traceback", models.TextField(db_default="")),
            ],
            options={
                "db_table": "execution_job_end",
                "default_permissions": (),
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("traceback", ""), ("why_not", "")),
                            models.Q(("result__isnull", True), ("traceback", "")),
                            models.Q(("result__isnull", True), ("why_not", "")),
                            _connector="OR",
                        ),
                        name="job_end_has_one_kind",
                    )
                ],
            },
        ),
        migrations.RunSQL(
            text("harbor_refresh.tasks.migrations", "jobs_go_with_their_tasks"), migrations.RunSQL.noop
        ),
    ]
