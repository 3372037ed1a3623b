import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

from executions.sql import text


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
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
            ],
            options={
                "db_table": "execution_status_change",
                "ordering": ("revision",),
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
            name="Quarantine",
            fields=[
                (
                    "execution",
                    models.OneToOneField(
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
        migrations.AddIndex(
            model_name="execution",
            index=models.Index(fields=["vendor_type", "vendor_id", "-id"], name="execution_vendor"),
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
        migrations.AddConstraint(
            model_name="statuschange",
            constraint=models.UniqueConstraint(
                fields=("execution", "revision"), name="status_change_once_a_revision"
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
        migrations.RunSQL(text("executions", "execution_rollup"), "DROP VIEW execution_rollup"),
        migrations.RunSQL(text("executions", "room_for_updates"), "ALTER TABLE execution RESET (fillfactor)"),
    ]
