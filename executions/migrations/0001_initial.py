import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.db.models.deletion
import django.db.models.expressions
import django.db.models.functions.datetime
from django.db import migrations, models

from harbor_refresh.executions.attached.attachment import is_attached
from harbor_refresh.executions.models import notifications
from harbor_refresh.executions.sql import text


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Delivery",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("execution_id", models.BigIntegerField(verbose_name="execution")),
                ("vendor_type", models.CharField(max_length=64, verbose_name="vendor")),
                ("revision", models.BigIntegerField()),
                (
                    "from_status",
                    models.CharField(
                        choices=[
                            ("Pending", "Pending"),
                            ("Scheduled", "Scheduled"),
                            ("Running", "Running"),
                            ("Stopped", "Stopped"),
                            ("Error", "Error"),
                            ("Success", "Success"),
                        ],
                        max_length=16,
                        verbose_name="from",
                    ),
                ),
                (
                    "to_status",
                    models.CharField(
                        choices=[
                            ("Pending", "Pending"),
                            ("Scheduled", "Scheduled"),
                            ("Running", "Running"),
                            ("Stopped", "Stopped"),
                            ("Error", "Error"),
                            ("Success", "Success"),
                        ],
                        max_length=16,
                        verbose_name="to",
                    ),
                ),
                ("changed_at", models.DateTimeField()),
                (
                    "state",
                    models.CharField(
                        choices=[("pending", "Pending"), ("delivered", "Delivered"), ("dead", "Dead")],
                        db_default="pending",
                        default="pending",
                        max_length=16,
                    ),
                ),
                ("attempts", models.IntegerField(db_default=0, default=0)),
                (
                    "next_at",
                    models.DateTimeField(
                        blank=True, db_default=django.db.models.functions.datetime.Now(), null=True
                    ),
                ),
                ("last_error", models.TextField(blank=True, db_default="", default="")),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "verbose_name_plural": "deliveries",
                "db_table": "execution_delivery",
            },
        ),
        migrations.CreateModel(
            name="Execution",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("vendor_type", models.CharField(max_length=64, verbose_name="vendor")),
                ("vendor_id", models.BigIntegerField(default=0)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("Pending", "Pending"),
                            ("Scheduled", "Scheduled"),
                            ("Running", "Running"),
                            ("Stopped", "Stopped"),
                            ("Error", "Error"),
                            ("Success", "Success"),
                        ],
                        default="Running",
                        max_length=16,
                    ),
                ),
                ("status_message", models.TextField(blank=True, default="")),
                ("trigger", models.CharField(default="MANUAL", max_length=16)),
                ("extra_attrs", models.JSONField(blank=True, default=dict)),
                ("start_time", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("update_time", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("end_time", models.DateTimeField(blank=True, null=True)),
                ("revision", models.BigIntegerField(default=0)),
            ],
            options={
                "db_table": "execution",
            },
        ),
        migrations.CreateModel(
            name="IdempotencyKey",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("caller", models.CharField(max_length=120)),
                ("key", models.CharField(max_length=200)),
                ("request", models.BinaryField(max_length=32)),
                ("answer", models.JSONField(null=True)),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "db_table": "execution_idempotency_key",
            },
        ),
        migrations.CreateModel(
            name="Lease",
            fields=[
                ("name", models.CharField(max_length=32, primary_key=True, serialize=False)),
                ("holder", models.TextField(null=True)),
                ("held_until", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "execution_lease",
            },
        ),
        migrations.CreateModel(
            name="OldSecret",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("secret", models.CharField(max_length=200)),
                ("signs_until", models.DateTimeField()),
            ],
            options={
                "db_table": "execution_old_secret",
                "ordering": ("-id",),
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="ReceivedMessage",
            fields=[
                ("id", models.CharField(max_length=255, primary_key=True, serialize=False)),
                ("at", models.DateTimeField()),
            ],
            options={
                "db_table": "execution_received_message",
            },
        ),
        migrations.CreateModel(
            name="Release",
            fields=[
                (
                    "id",
                    models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                ),
                ("changed_at", models.DateTimeField()),
            ],
            options={
                "db_table": "execution_release",
            },
        ),
        migrations.CreateModel(
            name="StatusChange",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("revision", models.BigIntegerField()),
                (
                    "from_status",
                    models.CharField(
                        choices=[
                            ("Pending", "Pending"),
                            ("Scheduled", "Scheduled"),
                            ("Running", "Running"),
                            ("Stopped", "Stopped"),
                            ("Error", "Error"),
                            ("Success", "Success"),
                        ],
                        max_length=16,
                        verbose_name="from",
                    ),
                ),
                (
                    "to_status",
                    models.CharField(
                        choices=[
                            ("Pending", "Pending"),
                            ("Scheduled", "Scheduled"),
                            ("Running", "Running"),
                            ("Stopped", "Stopped"),
                            ("Error", "Error"),
                            ("Success", "Success"),
                        ],
                        max_length=16,
                        verbose_name="to",
                    ),
                ),
                ("at", models.DateTimeField()),
                ("told", models.BooleanField(db_default=False, default=False, editable=False)),
            ],
            options={
                "db_table": "execution_status_change",
                "ordering": ("revision",),
            },
        ),
        migrations.CreateModel(
            name="Subscription",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=200, unique=True)),
                (
                    "kind",
                    models.CharField(
                        choices=[("webhook", "Webhook"), ("handler", "Handler"), ("callback", "Callback")],
                        default="webhook",
                        editable=False,
                        max_length=16,
                    ),
                ),
                ("url", models.CharField(blank=True, default="", max_length=2000, verbose_name="URL")),
                ("secret", models.CharField(blank=True, default="", editable=False, max_length=200)),
                ("rotations", models.IntegerField(db_default=0, default=0, editable=False)),
                ("handler", models.CharField(blank=True, default="", editable=False, max_length=400)),
                (
                    "payload",
                    models.CharField(
                        choices=[("standard", "Standard Webhooks"), ("slack", "Slack")],
                        default="standard",
                        max_length=16,
                    ),
                ),
                (
                    "vendor_types",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=64), blank=True, default=list, size=None
                    ),
                ),
                (
                    "statuses",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(
                            choices=[
                                ("Pending", "Pending"),
                                ("Scheduled", "Scheduled"),
                                ("Running", "Running"),
                                ("Stopped", "Stopped"),
                                ("Error", "Error"),
                                ("Success", "Success"),
                            ],
                            max_length=16,
                        ),
                        blank=True,
                        default=notifications.final_statuses,
                        size=None,
                    ),
                ),
                (
                    "triggers",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=16), blank=True, default=list, size=None
                    ),
                ),
                (
                    "enabled",
                    models.BooleanField(default=True, help_text="If not, changes of that time are never sent."),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                ("failures", models.IntegerField(default=0, editable=False)),
                ("failing_since", models.DateTimeField(editable=False, null=True)),
                ("retry_at", models.DateTimeField(editable=False, null=True)),
                ("missing_since", models.DateTimeField(editable=False, null=True)),
            ],
            options={
                "db_table": "execution_subscription",
                "ordering": ("name",),
            },
        ),
        migrations.CreateModel(
            name="Task",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("vendor_type", models.CharField(max_length=64, verbose_name="vendor")),
                ("job_id", models.CharField(blank=True, default="", max_length=64)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("Pending", "Pending"),
                            ("Scheduled", "Scheduled"),
                            ("Running", "Running"),
                            ("Stopped", "Stopped"),
                            ("Error", "Error"),
                            ("Success", "Success"),
                        ],
                        default="Pending",
                        max_length=16,
                    ),
                ),
                ("status_code", models.SmallIntegerField(default=0)),
                ("status_revision", models.BigIntegerField(default=0)),
                ("status_message", models.TextField(blank=True, default="")),
                ("run_count", models.IntegerField(default=0)),
                ("extra_attrs", models.JSONField(blank=True, default=dict)),
                ("creation_time", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("start_time", models.DateTimeField(blank=True, null=True)),
                ("update_time", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("end_time", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "db_table": "task",
            },
        ),
        migrations.CreateModel(
            name="Action",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "verb",
                    models.CharField(
                        choices=[
                            ("stop", "Stop"),
                            ("retry", "Retry"),
                            ("resume", "Resume"),
                            ("refresh", "Refresh"),
                            ("delete", "Delete"),
                        ],
                        max_length=8,
                    ),
                ),
                ("filter", models.JSONField(default=dict)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("queued", "Queued"),
                            ("running", "Running"),
                            ("done", "Done"),
                            ("stopped", "Stopped"),
                            ("failed", "Failed"),
                        ],
                        db_default="queued",
                        max_length=8,
                    ),
                ),
                ("highest", models.BigIntegerField()),
                ("cursor", models.BigIntegerField(db_default=0)),
                ("total", models.BigIntegerField(null=True)),
                ("done", models.BigIntegerField(db_default=0)),
                ("changed", models.BigIntegerField(db_default=0)),
                ("failed", models.BigIntegerField(db_default=0)),
                ("skipped", models.BigIntegerField(db_default=0)),
                ("requested_by", models.CharField(db_default="", max_length=150)),
                (
                    "requested_from",
                    models.CharField(
                        choices=[("api", "Api"), ("admin", "Admin"), ("terminal", "Terminal")], max_length=8
                    ),
                ),
                ("stop_asked", models.BooleanField(db_default=False)),
                ("error", models.TextField(db_default="")),
                ("attempts", models.SmallIntegerField(db_default=0)),
                ("holder", models.TextField(null=True)),
                ("held_until", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("begun_at", models.DateTimeField(null=True)),
                ("updated_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("ended_at", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "execution_action",
                "indexes": [
                    models.Index(
                        condition=models.Q(("state__in", ("queued", "running"))),
                        fields=["updated_at", "id"],
                        name="action_open",
                    ),
                    models.Index(fields=["state", "-id"], name="action_state"),
                    models.Index(
                        condition=models.Q(("ended_at__isnull", False)), fields=["ended_at"], name="action_ended"
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("verb__in", ["stop", "retry", "resume", "refresh", "delete"])),
                        name="action_verb_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("requested_from__in", ["api", "admin", "terminal"])),
                        name="action_origin_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("ended_at__isnull", False), ("state__in", ("done", "stopped", "failed"))),
                            models.Q(("ended_at__isnull", True), ("state__in", ("queued", "running"))),
                            _connector="OR",
                        ),
                        name="action_ends_when_final",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("held_until__isnull", True), ("holder__isnull", True)),
                            models.Q(
                                ("held_until__isnull", False), ("holder__isnull", False), ("state", "running")
                            ),
                            _connector="OR",
                        ),
                        name="action_held_while_it_runs",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("state__in", ("queued", "stopped")), ("begun_at__isnull", False), _connector="OR"
                        ),
                        name="action_begins_before_it_runs",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("changed__gte", 0),
                            (
                                "done",
                                django.db.models.expressions.CombinedExpression(
                                    django.db.models.expressions.CombinedExpression(
                                        models.F("changed"), "+", models.F("failed")
                                    ),
                                    "+",
                                    models.F("skipped"),
                                ),
                            ),
                            ("failed__gte", 0),
                            ("skipped__gte", 0),
                        ),
                        name="action_counts_add_up",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("attempts__gte", 0), ("cursor__gte", 0), ("cursor__lte", models.F("highest"))
                        ),
                        name="action_cursor_in_range",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ApiToken",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "name",
                    models.CharField(
                        help_text="What uses it, for example: runners in Berlin.", max_length=100, unique=True
                    ),
                ),
                ("digest", models.BinaryField(max_length=32, unique=True)),
                ("hint", models.CharField(editable=False, help_text="The beginning of the token.", max_length=12)),
                (
                    "may_read",
                    models.BooleanField(
                        default=True,
                        help_text="See executions, tasks, history and the queue.",
                        verbose_name="read",
                    ),
                ),
                (
                    "may_report",
                    models.BooleanField(
                        default=False,
                        help_text="Create executions, add tasks, report their status.",
                        verbose_name="report",
                    ),
                ),
                (
                    "may_manage",
                    models.BooleanField(
                        default=False,
                        help_text="Stop, finish, refresh, retry and delete; subscriptions and deliveries.",
                        verbose_name="manage",
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        editable=False,
                        verbose_name="created",
                    ),
                ),
                ("created_by", models.CharField(blank=True, default="", editable=False, max_length=150)),
                (
                    "expires_at",
                    models.DateTimeField(
                        blank=True, help_text="Empty: it does not expire.", null=True, verbose_name="expires"
                    ),
                ),
                (
                    "revoked_at",
                    models.DateTimeField(blank=True, editable=False, null=True, verbose_name="revoked"),
                ),
                (
                    "last_used_at",
                    models.DateTimeField(blank=True, editable=False, null=True, verbose_name="last used"),
                ),
            ],
            options={
                "verbose_name": "API token",
                "db_table": "execution_api_token",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("may_read", True), ("may_report", True), ("may_manage", True), _connector="OR"
                        ),
                        name="api_token_may_something",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="AuditEntry",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("by", models.CharField(db_default="", max_length=150)),
                (
                    "origin",
                    models.CharField(
                        choices=[("api", "Api"), ("admin", "Admin"), ("terminal", "Terminal")], max_length=8
                    ),
                ),
                ("address", models.CharField(db_default="", max_length=150)),
                ("verb", models.CharField(max_length=32)),
                ("kind", models.CharField(max_length=32)),
                ("target", models.CharField(db_default="", max_length=200)),
                ("count", models.BigIntegerField(null=True)),
                (
                    "outcome",
                    models.CharField(
                        choices=[("done", "Done"), ("unchanged", "Unchanged"), ("failed", "Failed")],
                        db_default="done",
                        max_length=16,
                    ),
                ),
                ("detail", models.TextField(db_default="")),
                (
                    "action",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="entries",
                        to="harbor_executions.action",
                    ),
                ),
            ],
            options={
                "verbose_name": "entry of the log of actions",
                "verbose_name_plural": "log of actions",
                "db_table": "execution_audit",
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="Counter",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "metric", "series", "shard", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("metric", models.TextField()),
                ("series", models.TextField()),
                ("shard", models.IntegerField()),
                ("amount", models.BigIntegerField()),
            ],
            options={
                "db_table": "execution_counter",
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("amount__gte", 1)), name="counter_only_grows")
                ],
            },
        ),
        migrations.CreateModel(
            name="DeletedTask",
            fields=[
                ("task_id", models.BigIntegerField(primary_key=True, serialize=False)),
                ("job_id", models.CharField(blank=True, default="", max_length=64)),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "db_table": "execution_deleted_task",
                "indexes": [
                    models.Index(
                        condition=models.Q(("job_id", ""), _negated=True),
                        fields=["job_id"],
                        name="deleted_task_job",
                    ),
                    models.Index(fields=["at"], name="deleted_task_age"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Quarantine",
            fields=[
                (
                    "execution",
                    models.OneToOneField(
                        db_constraint=not is_attached(),
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="quarantine",
                        serialize=False,
                        to="harbor_executions.execution",
                    ),
                ),
                ("reason", models.TextField()),
                ("attempts", models.IntegerField()),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "verbose_name_plural": "quarantine",
                "db_table": "execution_quarantine",
            },
        ),
        migrations.CreateModel(
            name="ShortenedHistory",
            fields=[
                (
                    "execution",
                    models.OneToOneField(
                        db_constraint=not is_attached(),
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="shortened_history",
                        serialize=False,
                        to="harbor_executions.execution",
                    ),
                ),
                ("through", models.BigIntegerField()),
            ],
            options={
                "db_table": "execution_shortened_history",
            },
        ),
        migrations.CreateModel(
            name="Callback",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("execution_id", models.BigIntegerField(verbose_name="execution")),
                ("handler", models.CharField(max_length=400)),
                (
                    "statuses",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(
                            choices=[
                                ("Pending", "Pending"),
                                ("Scheduled", "Scheduled"),
                                ("Running", "Running"),
                                ("Stopped", "Stopped"),
                                ("Error", "Error"),
                                ("Success", "Success"),
                            ],
                            max_length=16,
                        ),
                        size=None,
                    ),
                ),
                ("args", models.JSONField(default=list)),
                ("kwargs", models.JSONField(default=dict)),
                ("takes_change", models.BooleanField(default=True)),
                ("orphaned_at", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "execution_callback",
                "default_permissions": (),
                "indexes": [
                    models.Index(fields=["execution_id", "handler"], name="callback_of_execution"),
                    models.Index(
                        condition=models.Q(("orphaned_at__isnull", False)),
                        fields=["orphaned_at"],
                        name="callback_orphaned",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("statuses__contained_by", ["Stopped", "Error", "Success"]),
                            ("statuses__len__gte", 1),
                        ),
                        name="callback_is_of_an_end",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Link",
            fields=[
                (
                    "child",
                    models.OneToOneField(
                        db_constraint=not is_attached(),
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="link_to_parent",
                        serialize=False,
                        to="harbor_executions.execution",
                    ),
                ),
                (
                    "parent",
                    models.ForeignKey(
                        db_constraint=not is_attached(),
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="links",
                        to="harbor_executions.execution",
                    ),
                ),
                ("task_id", models.BigIntegerField(unique=True, verbose_name="task")),
                ("key", models.CharField(blank=True, default="", max_length=255)),
            ],
            options={
                "db_table": "execution_link",
                "default_permissions": (),
                "indexes": [models.Index(fields=["parent", "key"], name="link_of_parent")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("child__gt", models.F("parent"))),
                        name="link_leads_to_a_later_execution",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Gate",
            fields=[
                (
                    "execution",
                    models.OneToOneField(
                        db_constraint=not is_attached(),
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="gate",
                        serialize=False,
                        to="harbor_executions.execution",
                    ),
                ),
                ("task_id", models.BigIntegerField(unique=True, verbose_name="task")),
                ("closes_at", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "execution_gate",
                "default_permissions": (),
                "indexes": [
                    models.Index(
                        condition=models.Q(("closes_at__isnull", False)), fields=["closes_at"], name="gate_open"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Addition",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("kind", models.CharField(choices=[("tasks", "Tasks"), ("child", "Child")], max_length=5)),
                ("key", models.CharField(max_length=255)),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "execution",
                    models.ForeignKey(
                        db_constraint=not is_attached(),
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="additions",
                        to="harbor_executions.execution",
                    ),
                ),
            ],
            options={
                "db_table": "execution_addition",
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(fields=("execution", "kind", "key"), name="addition_once_a_key"),
                    models.CheckConstraint(
                        condition=models.Q(("kind__in", ["tasks", "child"])), name="addition_is_of_a_kind"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("key", ""), _negated=True), name="addition_has_its_key"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="VendorKey",
            fields=[
                (
                    "execution",
                    models.OneToOneField(
                        db_constraint=not is_attached(),
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="text_key",
                        serialize=False,
                        to="harbor_executions.execution",
                    ),
                ),
                ("key", models.CharField(max_length=255)),
            ],
            options={
                "db_table": "execution_vendor_key",
                "default_permissions": (),
                "indexes": [models.Index(fields=["key", "-execution"], name="vendor_key_newest")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("key", ""), _negated=True), name="vendor_key_is_text"
                    ),
                ],
            },
        ),
        migrations.AddIndex(
            model_name="execution",
            index=models.Index(fields=["vendor_type", "vendor_id", "-id"], name="execution_vendor"),
        ),
        migrations.AddIndex(
            model_name="execution",
            index=models.Index(fields=["start_time", "id"], name="execution_started"),
        ),
        migrations.AddIndex(
            model_name="execution",
            index=django.contrib.postgres.indexes.GinIndex(
                fields=["extra_attrs"], name="execution_attributes", opclasses=["jsonb_path_ops"]
            ),
        ),
        migrations.AddConstraint(
            model_name="execution",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("status__in", ["Pending", "Scheduled", "Running", "Stopped", "Error", "Success"])
                ),
                name="execution_status_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="execution",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("end_time__isnull", False), ("status__in", ("Stopped", "Error", "Success"))),
                    models.Q(
                        models.Q(("status__in", ("Stopped", "Error", "Success")), _negated=True),
                        ("end_time__isnull", True),
                    ),
                    _connector="OR",
                ),
                name="execution_ends_when_final",
            ),
        ),
        migrations.AddConstraint(
            model_name="execution",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("vendor_type", ""), _negated=True),
                    models.Q(("vendor_type__contains", ":"), _negated=True),
                ),
                name="execution_vendor_readable",
            ),
        ),
        migrations.AddConstraint(
            model_name="execution",
            constraint=models.CheckConstraint(
                condition=models.Q(("revision__gte", 0)), name="execution_revision_grows"
            ),
        ),
        migrations.AddIndex(
            model_name="idempotencykey",
            index=models.Index(fields=["at"], name="idempotency_key_age"),
        ),
        migrations.AddConstraint(
            model_name="idempotencykey",
            constraint=models.UniqueConstraint(fields=("caller", "key"), name="idempotency_key_once"),
        ),
        migrations.AddConstraint(
            model_name="lease",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("held_until__isnull", True), ("holder__isnull", True)),
                    models.Q(("held_until__isnull", False), ("holder__isnull", False)),
                    _connector="OR",
                ),
                name="lease_is_whole",
            ),
        ),
        migrations.AddIndex(
            model_name="receivedmessage",
            index=models.Index(fields=["at"], name="received_message_age"),
        ),
        migrations.AddField(
            model_name="statuschange",
            name="execution",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="history",
                to="harbor_executions.execution",
            ),
        ),
        migrations.AddConstraint(
            model_name="subscription",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("handler", ""),
                        ("kind", "webhook"),
                        ("missing_since__isnull", True),
                        models.Q(("url", ""), _negated=True),
                        models.Q(("secret", ""), _negated=True),
                    ),
                    models.Q(
                        ("kind__in", ("handler", "callback")),
                        ("secret", ""),
                        ("url", ""),
                        models.Q(("handler", ""), _negated=True),
                    ),
                    _connector="OR",
                ),
                name="subscription_has_its_target",
            ),
        ),
        migrations.AddConstraint(
            model_name="subscription",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("failing_since__isnull", True), ("failures", 0)),
                    models.Q(("failing_since__isnull", False), ("failures__gt", 0)),
                    _connector="OR",
                ),
                name="subscription_fails_since_its_first_failure",
            ),
        ),
        migrations.AddConstraint(
            model_name="subscription",
            constraint=models.UniqueConstraint(
                condition=models.Q(("kind", "webhook"), _negated=True),
                fields=("kind", "handler"),
                name="subscription_once_a_handler",
            ),
        ),
        migrations.AddField(
            model_name="oldsecret",
            name="subscription",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="old_secrets",
                to="harbor_executions.subscription",
            ),
        ),
        migrations.AddField(
            model_name="delivery",
            name="subscription",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="deliveries",
                to="harbor_executions.subscription",
            ),
        ),
        migrations.AddField(
            model_name="task",
            name="execution",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="tasks",
                to="harbor_executions.execution",
            ),
        ),
        migrations.AddIndex(
            model_name="auditentry",
            index=models.Index(fields=["kind", "target", "-id"], name="audit_target"),
        ),
        migrations.AddIndex(
            model_name="auditentry",
            index=models.Index(fields=["by", "-id"], name="audit_by"),
        ),
        migrations.AddIndex(
            model_name="auditentry",
            index=models.Index(fields=["verb", "-id"], name="audit_verb"),
        ),
        migrations.AddIndex(
            model_name="auditentry",
            index=models.Index(fields=["origin", "-id"], name="audit_origin"),
        ),
        migrations.AddIndex(
            model_name="auditentry",
            index=models.Index(fields=["at"], name="audit_at"),
        ),
        migrations.AddIndex(
            model_name="auditentry",
            index=models.Index(
                condition=models.Q(("action__isnull", False)), fields=["action"], name="audit_action"
            ),
        ),
        migrations.AddConstraint(
            model_name="auditentry",
            constraint=models.CheckConstraint(
                condition=models.Q(("origin__in", ["api", "admin", "terminal"])), name="audit_origin_known"
            ),
        ),
        migrations.AddConstraint(
            model_name="auditentry",
            constraint=models.CheckConstraint(
                condition=models.Q(("outcome__in", ["done", "unchanged", "failed"])), name="audit_outcome_known"
            ),
        ),
        migrations.AddConstraint(
            model_name="auditentry",
            constraint=models.CheckConstraint(
                condition=models.Q(models.Q(("verb", ""), _negated=True), models.Q(("kind", ""), _negated=True)),
                name="audit_says_what",
            ),
        ),
        migrations.AddConstraint(
            model_name="auditentry",
            constraint=models.CheckConstraint(
                condition=models.Q(("count__isnull", True), ("count__gte", 0), _connector="OR"),
                name="audit_counts",
            ),
        ),
        migrations.AddConstraint(
            model_name="shortenedhistory",
            constraint=models.CheckConstraint(
                condition=models.Q(("through__gte", 1)), name="shortened_history_begins"
            ),
        ),
        migrations.AddIndex(
            model_name="statuschange",
            index=models.Index(condition=models.Q(("told", False)), fields=["id"], name="status_change_untold"),
        ),
        migrations.AddConstraint(
            model_name="statuschange",
            constraint=models.UniqueConstraint(
                fields=("execution", "revision"), name="status_change_once_a_revision"
            ),
        ),
        migrations.AddIndex(
            model_name="oldsecret",
            index=models.Index(fields=["signs_until"], name="old_secret_age"),
        ),
        migrations.AddConstraint(
            model_name="oldsecret",
            constraint=models.CheckConstraint(
                condition=models.Q(("secret", ""), _negated=True), name="old_secret_is_one"
            ),
        ),
        migrations.AddIndex(
            model_name="delivery",
            index=models.Index(
                condition=models.Q(("state", "pending")),
                fields=["subscription", "next_at", "id"],
                name="delivery_due",
            ),
        ),
        migrations.AddIndex(
            model_name="delivery",
            index=models.Index(
                condition=models.Q(("state", "pending")),
                fields=["subscription", "execution_id", "revision"],
                name="delivery_in_order",
            ),
        ),
        migrations.AddIndex(
            model_name="delivery",
            index=models.Index(
                condition=models.Q(("state", "dead")), fields=["subscription", "id"], name="delivery_dead"
            ),
        ),
        migrations.AddIndex(
            model_name="delivery",
            index=models.Index(
                condition=models.Q(("state", "pending"), _negated=True), fields=["ended_at"], name="delivery_ended"
            ),
        ),
        migrations.AddConstraint(
            model_name="delivery",
            constraint=models.UniqueConstraint(
                fields=("subscription", "execution_id", "revision"), name="delivery_once_a_revision"
            ),
        ),
        migrations.AddConstraint(
            model_name="delivery",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("ended_at__isnull", True), ("next_at__isnull", False), ("state", "pending")),
                    models.Q(
                        ("ended_at__isnull", False),
                        ("next_at__isnull", True),
                        ("state__in", ("delivered", "dead")),
                    ),
                    _connector="OR",
                ),
                name="delivery_waits_until_it_ends",
            ),
        ),
        migrations.AddIndex(
            model_name="task",
            index=models.Index(
                fields=["execution", "status_code"], include=("status", "end_time"), name="task_rollup"
            ),
        ),
        migrations.AddIndex(
            model_name="task",
            index=models.Index(fields=["update_time", "id"], name="task_changed_lately"),
        ),
        migrations.AddIndex(
            model_name="task",
            index=models.Index(
                condition=models.Q(("job_id", ""), _negated=True), fields=["job_id"], name="task_job"
            ),
        ),
        migrations.AddIndex(
            model_name="task",
            index=models.Index(
                condition=models.Q(("status", "Success"), _negated=True),
                fields=["status", "-execution", "-id"],
                name="task_by_status",
            ),
        ),
        migrations.AddConstraint(
            model_name="task",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("status", "Pending"), ("status_code", 0)),
                    models.Q(("status", "Scheduled"), ("status_code", 1)),
                    models.Q(("status", "Running"), ("status_code", 2)),
                    models.Q(("status", "Stopped"), ("status_code", 3)),
                    models.Q(("status", "Error"), ("status_code", 3)),
                    models.Q(("status", "Success"), ("status_code", 3)),
                    _connector="OR",
                ),
                name="task_status_has_its_code",
            ),
        ),
        migrations.AddConstraint(
            model_name="task",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("end_time__isnull", False), ("status_code", 3)),
                    models.Q(("status_code__lt", 3), ("end_time__isnull", True)),
                    _connector="OR",
                ),
                name="task_ends_when_final",
            ),
        ),
        migrations.AddConstraint(
            model_name="task",
            constraint=models.CheckConstraint(
                condition=models.Q(("status_revision__gte", 0), ("status_revision__lte", 2305843009213693951)),
                name="task_revision_in_range",
            ),
        ),
        migrations.RunSQL(
            text("harbor_refresh.executions", "schema/execution_rollup"),
            "DROP FUNCTION execution_rollup(bigint[])",
        ),
        *(
            []
            if is_attached()
            else [
                migrations.RunSQL(
                    text("harbor_refresh.executions", "schema/room_for_updates"),
                    "ALTER TABLE execution RESET (fillfactor)",
                )
            ]
        ),
        migrations.RunSQL(text("harbor_refresh.executions", "schema/room_for_counters"), migrations.RunSQL.noop),
        migrations.RunSQL(
            text("harbor_refresh.executions", "schema/counting_function"),
            "DROP FUNCTION add_to_execution_counters(text[], text[], bigint[])",
        ),
        migrations.RunSQL(
            text("harbor_refresh.executions", "schema/counting_refreshes"), "DROP FUNCTION count_execution_refresh"
        ),
        migrations.RunSQL(
            text("harbor_refresh.executions", "schema/report_by_job_function"), "DROP FUNCTION report_task_by_job"
        ),
    ]
