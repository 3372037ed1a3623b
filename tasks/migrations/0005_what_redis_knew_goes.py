"""What the release before 0002 knew of Redis goes. Dead rows of jobs are cleared early: each job leaves four."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("harbor_tasks", "0004_indexes_of_jobs"),
    ]

    operations = [
        migrations.RunSQL("SET LOCAL lock_timeout = '2s'", migrations.RunSQL.noop),
        migrations.RemoveField("job", "arguments_revision"),
        migrations.RemoveField("job", "published_at"),
        migrations.DeleteModel("RedisMemory"),
        migrations.RunSQL("DROP FUNCTION IF EXISTS execution_task_state", migrations.RunSQL.noop),
        migrations.RunSQL(
            "ALTER TABLE execution_job SET (autovacuum_vacuum_scale_factor = 0.01)",
            "ALTER TABLE execution_job RESET (autovacuum_vacuum_scale_factor)",
        ),
    ]
