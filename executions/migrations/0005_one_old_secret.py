"""The old secret of a webhook is a column. Of several, the first stays, because the receiver may know no other."""

from django.db import migrations, models

KEPT = """
UPDATE execution_subscription s
SET old_secret = o.secret, old_secret_ends_at = o.signs_until
FROM (
    SELECT subscription_id, (array_agg(secret ORDER BY id))[1] AS secret, max(signs_until) AS signs_until
    FROM execution_old_secret
    WHERE signs_until > now()
    GROUP BY subscription_id
) o
WHERE s.id = o.subscription_id
"""


class Migration(migrations.Migration):
    dependencies = [
        ("harbor_executions", "0004_no_index_of_attributes"),
    ]

    operations = [
        migrations.RunSQL("SET LOCAL lock_timeout = '2s'", migrations.RunSQL.noop),
        migrations.AddField(
            "subscription",
            "old_secret",
            models.CharField(blank=True, db_default="", default="", editable=False, max_length=200),
        ),
        migrations.AddField("subscription", "old_secret_ends_at", models.DateTimeField(editable=False, null=True)),
        migrations.RunSQL(KEPT, migrations.RunSQL.noop),
        migrations.RemoveField("subscription", "rotations"),
        migrations.DeleteModel("OldSecret"),
    ]
