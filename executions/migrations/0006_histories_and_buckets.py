"""No table notes how long a history was, and the function that counts a refresh knows its buckets."""

from django.db import migrations

from harbor_refresh.executions.sql import text

BEFORE = "bigint, bigint, float, float[], float[], text[], float[], text[]"


class Migration(migrations.Migration):
    dependencies = [
        ("harbor_executions", "0005_one_old_secret"),
    ]

    operations = [
        migrations.RunSQL("SET LOCAL lock_timeout = '2s'", migrations.RunSQL.noop),
        migrations.DeleteModel("ShortenedHistory"),
        migrations.RunSQL(text("harbor_refresh.executions", "schema/counting_refreshes"), migrations.RunSQL.noop),
        migrations.RunSQL(f"DROP FUNCTION IF EXISTS count_execution_refresh({BEFORE})", migrations.RunSQL.noop),
    ]
