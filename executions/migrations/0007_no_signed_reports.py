"""Reports are not signed, so no table notes which messages were received."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("harbor_executions", "0006_histories_and_buckets"),
    ]

    operations = [
        migrations.RunSQL("SET LOCAL lock_timeout = '2s'", migrations.RunSQL.noop),
        migrations.DeleteModel("ReceivedMessage"),
    ]
