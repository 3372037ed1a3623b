import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("harbor_executions", "0002_api_access")]

    operations = [
        migrations.CreateModel(
            name="Lease",
            fields=[
                ("name", models.CharField(max_length=32, primary_key=True, serialize=False)),
                ("holder", models.TextField(null=True)),
                ("held_until", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "execution_lease",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("held_until__isnull", True), ("holder__isnull", True)),
                            models.Q(("held_until__isnull", False), ("holder__isnull", False)),
                            _connector="OR",
                        ),
                        name="lease_is_whole",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ShortenedHistory",
            fields=[
                (
                    "execution",
                    models.OneToOneField(
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
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("through__gte", 1)), name="shortened_history_begins"
                    )
                ],
            },
        ),
    ]
