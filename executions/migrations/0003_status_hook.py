import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("harbor_executions", "0002_api_access"),
    ]

    operations = [
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
            name="ReceivedMessage",
            fields=[
                ("id", models.CharField(max_length=255, primary_key=True, serialize=False)),
                ("at", models.DateTimeField()),
            ],
            options={
                "db_table": "execution_received_message",
                "indexes": [models.Index(fields=["at"], name="received_message_age")],
            },
        ),
    ]
