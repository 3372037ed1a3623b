"""The tables of this app, with their functions and triggers. No release had the migrations that it replaces."""

from collections.abc import Sequence
from typing import Any

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import F, Q
from django.db.models.functions import Now

from harbor_refresh.executions.attached.attachment import is_attached
from harbor_refresh.executions.sql import text

HERE, JOBS = "harbor_refresh.tasks.migrations", "harbor_refresh.tasks.jobs"
KINDS = (
    "node_died",
    "recovered",
    "jobs_recovered",
    "drift",
    "quarantined",
    "released_from_quarantine",
    "deliveries_died",
)
STATES, INPUTS = ("waiting", "sent", "running", "ended"), ("nothing", "result", "list")
WAITS_IN_LINE = {"state": "waiting", "waits_for": 0, "not_before": None}


def choices(values: Sequence[str]) -> list[tuple[str, str]]:
    return [(value, value.replace("_", " ").title()) for value in values]


def row_of(model: str, related_name: str) -> "models.OneToOneField[Any, Any]":
    """Return the key of a row that goes with a row of another table."""
    return models.OneToOneField(
        to=model,
        on_delete=django.db.models.deletion.CASCADE,
        primary_key=True,
        serialize=False,
        related_name=related_name,
        db_constraint=False,
    )


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ("harbor_tasks", name)
        for name in (
            "0001_initial",
            "0002_jobs_on_rows",
            "0003_jobs_are_taken_over",
            "0004_indexes_of_jobs",
            "0005_what_redis_knew_goes",
            "0006_busy_slots",
            "0007_needs",
            "0008_indexes_of_needs",
            "0009_limits_and_turns",
            "0010_terms",
        )
    ]

    dependencies = [
        ("harbor_executions", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            "TrackedExecution",
            [],
            {"proxy": True, "indexes": [], "constraints": []},
            ("harbor_executions.execution",),
        ),
        migrations.CreateModel(
            "Sample",
            [
                ("at", models.DateTimeField(primary_key=True, serialize=False)),
                ("backlog", models.BigIntegerField(null=True)),
                ("refreshed", models.BigIntegerField()),
                ("failed", models.BigIntegerField()),
                ("recovered", models.BigIntegerField()),
                ("latency", models.JSONField()),
            ],
            {"db_table": "service_sample"},
        ),
        migrations.CreateModel(
            "Event",
            [
                ("pk", models.CompositePrimaryKey("minute", "kind", "subject", primary_key=True, serialize=False)),
                ("minute", models.DateTimeField()),
                ("kind", models.CharField(choices=choices(KINDS), max_length=32)),
                ("subject", models.CharField(db_default="", max_length=255)),
                ("count", models.BigIntegerField()),
                ("last_at", models.DateTimeField()),
            ],
            {
                "db_table": "service_event",
                "constraints": [models.CheckConstraint(condition=Q(kind__in=[*KINDS]), name="event_kind_known")],
            },
        ),
        migrations.CreateModel(
            "Pause",
            [
                ("queue", models.CharField(max_length=255, primary_key=True, serialize=False)),
                ("at", models.DateTimeField(db_default=Now())),
                ("by", models.CharField(db_default="", max_length=150)),
                ("reason", models.CharField(db_default="", max_length=500)),
            ],
            {
                "verbose_name": "pause of a queue",
                "verbose_name_plural": "queue",
                "db_table": "execution_pause",
                "default_permissions": ("view", "change"),
                "constraints": [models.CheckConstraint(condition=~Q(queue=""), name="pause_names_a_queue")],
            },
        ),
        migrations.CreateModel(
            "Watermark",
            [
                ("id", models.SmallIntegerField(default=1, primary_key=True, serialize=False)),
                ("settled_before", models.DateTimeField()),
                ("last_pass_at", models.DateTimeField(null=True)),
                ("timeline", models.CharField(db_default="", max_length=8)),
                ("last_drifted", models.BigIntegerField(null=True)),
            ],
            {
                "db_table": "execution_watermark",
                "constraints": [models.CheckConstraint(condition=Q(id=1), name="watermark_is_one_row")],
            },
        ),
        migrations.CreateModel(
            "Node",
            [
                ("id", models.BigIntegerField(primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=255)),
                ("slots", models.PositiveIntegerField()),
                ("busy", models.PositiveIntegerField(db_default=0)),
                ("rate", models.FloatField(null=True)),
                ("queues", models.JSONField()),
                ("started_at", models.DateTimeField(db_default=Now())),
                ("heard_at", models.DateTimeField(db_default=Now())),
                ("suspected_at", models.DateTimeField(null=True)),
                ("began", models.JSONField(db_default={})),
            ],
            {"db_table": "execution_node", "default_permissions": ("view",)},
        ),
        migrations.CreateModel(
            "Job",
            [
                ("task", row_of("harbor_executions.task", "job")),
                ("name", models.CharField(max_length=255)),
                ("args", models.JSONField(default=list)),
                ("kwargs", models.JSONField(default=dict)),
                ("options", models.JSONField(default=dict)),
                ("queue", models.CharField(max_length=255)),
                ("priority", models.SmallIntegerField(default=0)),
                ("max_attempts", models.PositiveSmallIntegerField()),
                ("runs_before", models.PositiveIntegerField(default=0)),
                ("unique_key", models.CharField(max_length=64, null=True)),
                ("holds_key", models.BooleanField(default=False)),
                (
                    "takes",
                    models.CharField(
                        choices=choices(INPUTS), db_default="nothing", default="nothing", max_length=7
                    ),
                ),
                ("result", models.JSONField(null=True)),
                ("result_revision", models.BigIntegerField(null=True)),
                ("state", models.CharField(choices=choices(STATES), default="waiting", max_length=8)),
                ("run", models.IntegerField(default=0)),
                ("revision", models.BigIntegerField(default=0)),
                ("waits_for", models.PositiveIntegerField(db_default=0, default=0)),
                ("not_before", models.DateTimeField(null=True)),
                ("retries", models.IntegerField(default=0)),
                ("sent_at", models.DateTimeField(null=True)),
                ("resent", models.SmallIntegerField(default=0)),
                ("node", models.BigIntegerField(null=True)),
                ("process", models.IntegerField(null=True)),
                ("begun_at", models.DateTimeField(null=True)),
                ("heard_at", models.DateTimeField(null=True)),
                ("check_in", models.JSONField(null=True)),
                ("report", models.JSONField(null=True)),
                ("limit_key", models.CharField(max_length=200, null=True)),
                ("admitted", models.BooleanField(db_default=True, default=True)),
                ("turn", models.BigIntegerField(db_default=0, default=0)),
                ("tenant", models.CharField(max_length=200, null=True)),
                ("kill_at", models.DateTimeField(null=True)),
            ],
            {
                "db_table": "execution_job",
                "indexes": [
                    models.Index(
                        fields=["queue", "priority", "turn", "task"],
                        name="job_next",
                        condition=Q(**WAITS_IN_LINE, admitted=True),
                    ),
                    models.Index(
                        fields=["name", "limit_key", "priority", "turn", "task"],
                        name="job_limited",
                        condition=Q(**WAITS_IN_LINE, admitted=False),
                    ),
                    models.Index(
                        fields=["name", "limit_key", "state"],
                        name="job_admitted",
                        condition=Q(limit_key__isnull=False, admitted=True) & ~Q(state="ended"),
                    ),
                    models.Index(
                        fields=["tenant", "queue", "priority", "limit_key", "turn"],
                        name="job_of_tenant",
                        condition=Q(tenant__isnull=False, state="waiting"),
                    ),
                    models.Index(
                        fields=["not_before"],
                        name="job_later",
                        condition=Q(state="waiting", waits_for=0, not_before__isnull=False),
                    ),
                    models.Index(fields=["queue", "sent_at"], name="job_sent", condition=Q(state="sent")),
                    models.Index(fields=["node", "process"], name="job_running", condition=Q(state="running")),
                    models.Index(fields=["task"], name="job_unmet", condition=Q(state="waiting", waits_for__gt=0)),
                    models.Index(fields=["task"], name="job_unreported", condition=Q(report__isnull=False)),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=["unique_key"], condition=Q(holds_key=True), name="job_unique"),
                    models.CheckConstraint(
                        name="job_begins_as_often_as_it_may",
                        condition=Q(max_attempts__gte=1, run__lte=F("runs_before") + F("max_attempts")),
                    ),
                    models.CheckConstraint(name="job_state_known", condition=Q(state__in=[*STATES])),
                    models.CheckConstraint(
                        name="job_waits_for_a_limit", condition=Q(admitted=True) | Q(limit_key__isnull=False)
                    ),
                    models.CheckConstraint(
                        name="job_runs_in_a_process",
                        condition=Q(state="running", node__isnull=False, process__isnull=False, run__gte=1)
                        | (~Q(state="running") & Q(node=None, process=None)),
                    ),
                    models.CheckConstraint(
                        name="job_sent_at", condition=~Q(state="sent") | Q(sent_at__isnull=False)
                    ),
                    models.CheckConstraint(
                        name="job_result_of_a_run", condition=Q(result=None) | Q(result_revision__isnull=False)
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            "Need",
            [
                ("pk", models.CompositePrimaryKey("job_id", "needed_id", primary_key=True, serialize=False)),
                (
                    "job",
                    models.ForeignKey(
                        to="harbor_tasks.job",
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="needs",
                        db_index=False,
                        db_constraint=False,
                    ),
                ),
                (
                    "needed",
                    models.ForeignKey(
                        to="harbor_tasks.job",
                        on_delete=django.db.models.deletion.RESTRICT,
                        related_name="needed_by",
                        db_constraint=False,
                    ),
                ),
                ("place", models.PositiveIntegerField()),
                ("even_if_failed", models.BooleanField(default=False)),
                ("is_met", models.BooleanField(default=False)),
            ],
            {
                "db_table": "execution_need",
                "default_permissions": (),
                "constraints": [
                    models.CheckConstraint(condition=Q(needed__lt=F("job")), name="need_of_an_earlier_job")
                ],
            },
        ),
        migrations.CreateModel(
            "JobEnd",
            [
                ("job", row_of("harbor_tasks.job", "kept_end")),
                ("revision", models.BigIntegerField()),
                ("result", models.JSONField(null=True)),
                ("why_not", models.TextField(db_default="")),
                ("traceback", models.TextField(db_default="")),
            ],
            {
                "db_table": "execution_job_end",
                "default_permissions": (),
                "constraints": [
                    models.CheckConstraint(
                        name="job_end_has_one_kind",
                        condition=Q(why_not="", traceback="")
                        | Q(result__isnull=True, traceback="")
                        | Q(result__isnull=True, why_not=""),
                    )
                ],
            },
        ),
        migrations.CreateModel(
            "Limit",
            [
                ("name", models.CharField(max_length=255, primary_key=True, serialize=False)),
                ("concurrency", models.PositiveIntegerField(blank=True, null=True)),
                ("rate", models.PositiveIntegerField(blank=True, null=True)),
                (
                    "per",
                    models.PositiveIntegerField(
                        choices=[(1, "second"), (60, "minute"), (3600, "hour"), (86400, "day")],
                        db_default=60,
                        default=60,
                    ),
                ),
                ("declared", models.JSONField(db_default={}, default=dict)),
                ("changed_by", models.CharField(db_default="", default="", max_length=150)),
                ("swept_at", models.DateTimeField(db_default=Now())),
            ],
            {
                "db_table": "execution_limit",
                "default_permissions": ("view", "change"),
                "constraints": [
                    models.CheckConstraint(
                        name="limit_rate_of_one_or_more",
                        condition=Q(rate=None) | Q(rate__gte=1, rate__isnull=False),
                    ),
                    models.CheckConstraint(condition=Q(per__gte=1), name="limit_per_a_time"),
                ],
            },
        ),
        migrations.CreateModel(
            "LimitPace",
            [
                ("pk", models.CompositePrimaryKey("name", "key", primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=255)),
                ("key", models.CharField(max_length=200)),
                ("next_at", models.DateTimeField()),
            ],
            {"db_table": "execution_limit_pace", "default_permissions": ()},
        ),
        migrations.CreateModel(
            "Terms",
            [
                ("execution", row_of("harbor_executions.execution", "terms")),
                ("vendor_type", models.CharField(max_length=64)),
                ("once", models.CharField(max_length=255, null=True)),
                ("stops_on_failure", models.BooleanField(default=False)),
                ("tells_first_failure", models.BooleanField(default=False)),
                ("first_failed_at", models.DateTimeField(null=True)),
                ("deadline", models.DateTimeField(null=True)),
                ("is_over", models.BooleanField(default=False)),
            ],
            {
                "db_table": "execution_terms",
                "default_permissions": (),
                "indexes": [
                    models.Index(
                        fields=["deadline"],
                        name="terms_deadline",
                        condition=Q(deadline__isnull=False, is_over=False),
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=["vendor_type", "once"], condition=Q(once__isnull=False), name="terms_once"
                    ),
                    models.CheckConstraint(condition=~Q(once=""), name="terms_once_is_text"),
                ],
            },
        ),
        migrations.CreateModel(
            "Failure",
            [
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("execution_id", models.BigIntegerField(verbose_name="execution")),
            ],
            {"db_table": "execution_failure", "default_permissions": ()},
        ),
        # dead rows of jobs are cleared early: each job leaves four
        migrations.RunSQL(
            "ALTER TABLE execution_job SET (autovacuum_vacuum_scale_factor = 0.01)", migrations.RunSQL.noop
        ),
        migrations.RunSQL(text(HERE, "ends_go_with_their_jobs"), migrations.RunSQL.noop),
        migrations.RunSQL(text(JOBS, "schema/needs_go_with_their_jobs"), migrations.RunSQL.noop),
        migrations.RunSQL(text(JOBS, "schema/begin_function"), "DROP FUNCTION execution_begin_job"),
        migrations.RunSQL(
            text(JOBS, "schema/end_with_their_tasks"), "DROP FUNCTION IF EXISTS execution_end_jobs CASCADE"
        ),
        migrations.RunSQL(
            text(JOBS, "schema/turn_functions"),
            "DROP FUNCTION execution_job_joins_line CASCADE; DROP FUNCTION execution_turn",
        ),
        migrations.RunSQL(text(JOBS, "schema/admit_function"), "DROP FUNCTION execution_admit"),
        # attached, executions and tasks are Harbor's: they get neither constraints nor triggers of ours
        *(
            []
            if is_attached()
            else [
                migrations.RunSQL(text(HERE, "jobs_go_with_their_tasks"), migrations.RunSQL.noop),
                migrations.RunSQL(text(JOBS, "schema/terms_go_with_their_executions"), migrations.RunSQL.noop),
                migrations.RunSQL(
                    text(JOBS, "schema/note_failures"), "DROP FUNCTION execution_note_failure CASCADE"
                ),
            ]
        ),
    ]
