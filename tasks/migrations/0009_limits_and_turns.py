"""Limits and turns of jobs, and the rate of a worker. It locks nothing for long, and may run again."""

from django.db import migrations, models
from django.db.models import Q
from django.db.models.functions import Now

from harbor_refresh.executions.sql import text

JOBS = "harbor_refresh.tasks.jobs"
INDEXES = (
    (
        models.Index(
            fields=["queue", "priority", "turn", "task"],
            name="job_next",
            condition=Q(state="waiting", waits_for=0, not_before=None, admitted=True),
        ),
        "(queue, priority, turn, task_id)"
        " WHERE state = 'waiting' AND waits_for = 0 AND not_before IS NULL AND admitted",
    ),
    (
        models.Index(
            fields=["name", "limit_key", "priority", "turn", "task"],
            name="job_limited",
            condition=Q(state="waiting", waits_for=0, not_before=None, admitted=False),
        ),
        "(name, limit_key, priority, turn, task_id)"
        " WHERE state = 'waiting' AND waits_for = 0 AND not_before IS NULL AND NOT admitted",
    ),
    (
        models.Index(
            fields=["name", "limit_key", "state"],
            name="job_admitted",
            condition=Q(limit_key__isnull=False, admitted=True) & ~Q(state="ended"),
        ),
        "(name, limit_key, state) WHERE limit_key IS NOT NULL AND admitted AND NOT (state = 'ended')",
    ),
    (
        models.Index(
            fields=["tenant", "queue", "priority", "limit_key", "turn"],
            name="job_of_tenant",
            condition=Q(tenant__isnull=False, state="waiting"),
        ),
        "(tenant, queue, priority, limit_key, turn) WHERE tenant IS NOT NULL AND state = 'waiting'",
    ),
)
COLUMNS = (
    ("job", "limit_key", models.CharField(max_length=200, null=True), "varchar(200)"),
    ("job", "admitted", models.BooleanField(default=True, db_default=True), "boolean DEFAULT TRUE NOT NULL"),
    ("job", "turn", models.BigIntegerField(default=0, db_default=0), "bigint DEFAULT 0 NOT NULL"),
    ("job", "tenant", models.CharField(max_length=200, null=True), "varchar(200)"),
    ("node", "rate", models.FloatField(null=True), "double precision"),
)
TABLES = """
CREATE TABLE IF NOT EXISTS execution_limit (
    name varchar(255) PRIMARY KEY,
    concurrency integer CHECK (concurrency >= 0),
    rate integer CHECK (rate >= 0),
    per integer DEFAULT 60 NOT NULL CHECK (per >= 0),
    declared jsonb DEFAULT '{}' NOT NULL,
    changed_by varchar(150) DEFAULT '' NOT NULL,
    swept_at timestamptz DEFAULT statement_timestamp() NOT NULL,
    CONSTRAINT limit_rate_of_one_or_more CHECK (rate IS NULL OR rate >= 1),
    CONSTRAINT limit_per_a_time CHECK (per >= 1)
);
CREATE TABLE IF NOT EXISTS execution_limit_pace (
    name varchar(255) NOT NULL,
    key varchar(200) NOT NULL,
    next_at timestamptz NOT NULL,
    PRIMARY KEY (name, key)
)
"""


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("harbor_tasks", "0008_indexes_of_needs"),
    ]

    operations = [
        migrations.RunSQL("SET lock_timeout = '1min'", migrations.RunSQL.noop),
        *(
            migrations.RunSQL(
                f"ALTER TABLE execution_{model} ADD COLUMN IF NOT EXISTS {name} {kind}",
                f"ALTER TABLE execution_{model} DROP COLUMN {name}",
                state_operations=[migrations.AddField(model, name, field)],
            )
            for model, name, field, kind in COLUMNS
        ),
        migrations.RunSQL(
            "ALTER TABLE execution_job DROP CONSTRAINT IF EXISTS job_waits_for_a_limit;"
            "ALTER TABLE execution_job ADD CONSTRAINT job_waits_for_a_limit"
            " CHECK (admitted OR limit_key IS NOT NULL) NOT VALID",
            migrations.RunSQL.noop,  # it goes with its columns
            state_operations=[
                migrations.AddConstraint(
                    "job",
                    models.CheckConstraint(
                        condition=Q(admitted=True) | Q(limit_key__isnull=False), name="job_waits_for_a_limit"
                    ),
                )
            ],
        ),
        migrations.RunSQL(
            "ALTER TABLE execution_job VALIDATE CONSTRAINT job_waits_for_a_limit", migrations.RunSQL.noop
        ),
        migrations.RunSQL(
            TABLES,
            "DROP TABLE execution_limit, execution_limit_pace",
            state_operations=[
                migrations.CreateModel(
                    name="Limit",
                    fields=[
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
                    options={
                        "db_table": "execution_limit",
                        "default_permissions": ("view", "change"),
                        "constraints": [
                            models.CheckConstraint(
                                condition=Q(rate=None) | Q(rate__gte=1, rate__isnull=False),
                                name="limit_rate_of_one_or_more",
                            ),
                            models.CheckConstraint(condition=Q(per__gte=1), name="limit_per_a_time"),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="LimitPace",
                    fields=[
                        (
                            "pk",
                            models.CompositePrimaryKey(
                                "name", "key", blank=True, editable=False, primary_key=True, serialize=False
                            ),
                        ),
                        ("name", models.CharField(max_length=255)),
                        ("key", models.CharField(max_length=200)),
                        ("next_at", models.DateTimeField()),
                    ],
                    options={"db_table": "execution_limit_pace", "default_permissions": ()},
                ),
            ],
        ),
        *(
            operation
            for index, what in INDEXES
            for operation in (
                migrations.RunSQL(f"DROP INDEX CONCURRENTLY IF EXISTS {index.name}", migrations.RunSQL.noop),
                migrations.RunSQL(
                    f"CREATE INDEX CONCURRENTLY {index.name} ON execution_job {what}",
                    f"DROP INDEX CONCURRENTLY {index.name}",
                    state_operations=[migrations.AddIndex("job", index)],
                ),
            )
        ),
        migrations.RunSQL(
            text(JOBS, "schema/turn_functions"),
            "DROP FUNCTION IF EXISTS execution_job_joins_line CASCADE; DROP FUNCTION IF EXISTS execution_turn",
        ),
        migrations.RunSQL(text(JOBS, "schema/admit_function"), "DROP FUNCTION IF EXISTS execution_admit"),
        migrations.RunSQL("RESET lock_timeout", migrations.RunSQL.noop),
    ]
