"""The old secret of a webhook is a column. Of several, the one that signs longest stays."""

from django.db import migrations, models

KEPT = """
UPDATE execution_subscription s
SET old_secret = o.secret, old_secret_ends_at = o.signs_until
FROM (
    SELECT DISTINCT ON (subscription_id) subscription_id, secret, signs_until
    FROM execution_old_secret
    ORDER BY subscription_id, signs_until DESC
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
