"""A worker says how many of its slots are busy."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("harbor_tasks", "0005_what_redis_knew_goes"),
    ]

    operations = [
        migrations.RunSQL("SET LOCAL lock_timeout = '2s'", migrations.RunSQL.noop),
        migrations.AddField("node", "busy", models.PositiveIntegerField(db_default=0)),
    ]
