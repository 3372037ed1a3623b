import hashlib
import json
from typing import Any

from django.db import migrations, models
from django.db.models import Q


def name_who_holds(apps: Any, schema_editor: Any) -> None:
    """Until now a job that was let go of its key had `~` and its id in the place of it."""
    Job = apps.get_model("executions", "Job")
    Job.objects.filter(unique_key__isnull=False).exclude(unique_key__startswith="~").update(holds_key=True)
    for job in Job.objects.filter(unique_key__startswith="~").iterator():
        text = json.dumps([job.name, job.args, job.kwargs], sort_keys=True, separators=(",", ":"))
        job.unique_key = hashlib.sha256(text.encode()).hexdigest()
        job.save(update_fields=["unique_key"])


class Migration(migrations.Migration):
    dependencies = [
        ("executions", "0006_reconcile_lease"),
    ]

    operations = [
        migrations.AddField("job", "holds_key", models.BooleanField(default=False)),
        migrations.RemoveConstraint("job", "job_unique"),
        migrations.RunPython(name_who_holds, migrations.RunPython.noop, elidable=True),
        migrations.AddConstraint(
            "job",
            models.UniqueConstraint(fields=["unique_key"], condition=Q(holds_key=True), name="job_unique"),
        ),
    ]
