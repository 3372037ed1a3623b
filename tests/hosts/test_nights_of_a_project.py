"""What a nightly sweep deletes in a project: nothing, until its settings say so."""

from pathlib import Path

import pytest

from tests.hosts.host import Host

pytestmark = pytest.mark.slow

MODELS = """
from django.db import models


class Export(models.Model):
    batch = models.ForeignKey("harbor_executions.Execution", on_delete=models.PROTECT)

    class Meta:
        app_label = "exports"
"""
JOBS = """
from celery import shared_task
from harbor_refresh.tasks.jobs import TrackedJob


@shared_task(base=TrackedJob, name="shop.pack", keep_result=True)
def pack(job, number):
    return number
"""
BATCHES = """
from django.db import connection
from harbor_refresh import start
from harbor_refresh.executions.lifecycle.creation import NewExecution, NewTask, create
from harbor_refresh.executions.models import Execution
from shop.exports.models import Export
from shop.people.tasks import pack

with connection.schema_editor() as editor:
    editor.create_model(Export)
batches = [start("EXPORT", jobs=[pack.s(number), pack.s(-number)]).id for number in range(200)]
Export.objects.bulk_create(Export(batch_id=pk) for pk in batches[:30])
waits = [create(NewExecution("EXPORT", tasks=[NewTask()])).pk for _ in range(5)]
assert set(Execution.objects.filter(pk__in=batches).values_list("status", flat=True)) == {"Success"}
print(json.dumps([batches, waits]))
"""
#: What there is of each execution, with the results of its jobs.
LOOK = """
from harbor_refresh.executions.models import Execution, StatusChange, Task
from harbor_refresh.tasks.models import Job, JobEnd

print(json.dumps({
    "execution": sorted(Execution.objects.values_list("pk", flat=True)),
    "task": sorted(Task.objects.values_list("execution_id", flat=True)),
    "change": sorted(StatusChange.objects.values_list("execution_id", flat=True)),
    "job": sorted(Job.objects.values_list("task__execution_id", flat=True)),
    "result": sorted(JobEnd.objects.values_list("job__task__execution_id", flat=True)),
}))
"""
#: A day passes: every moment that our tables know was a day earlier.
A_DAY = """
from datetime import timedelta
from django.apps import apps
from django.db.models import DateTimeField, F

for label in ("harbor_executions", "harbor_tasks"):
    for model in apps.get_app_config(label).get_models():
        moments = [one.attname for one in model._meta.fields if isinstance(one, DateTimeField)]
        if moments and model._meta.label != "harbor_executions.Lease":
            model.objects.update(**{name: F(name) - timedelta(days=1) for name in moments})
print("null")
"""


def project(folder: Path, database: str, settings: str = "") -> Host:
    joined = "import harbor_refresh\n\nharbor_refresh.connect(app)\n"
    files = {"exports__models": MODELS, "people__tasks": JOBS}
    apps = ["shop.exports", "django.contrib.admin"]
    eager = f"CELERY_TASK_ALWAYS_EAGER = True\n{settings}"
    return Host(folder, database, apps=apps, celery=joined, settings=eager, **files)


def night(host: Host) -> str:
    host.ask(A_DAY, CELERY_BROKER_URL="")
    done = host.run("-m", "django", "harbor", "sweep", CELERY_BROKER_URL="")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_everything_is_there_after_three_nights_and_with_retention_days_what_ended_before_is_gone(
    tmp_path: Path, database: str
) -> None:
    host = project(tmp_path / "keeps", database)
    batches, waits = host.ask(BATCHES, CELERY_BROKER_URL="")
    before = host.ask(LOOK, CELERY_BROKER_URL="")
    assert before["execution"] == [*batches, *waits]
    assert len(before["result"]) == 400

    for _ in range(3):
        assert night(host) == "Deleted 0 executions with 0 tasks, and 0 old rows.\n"
    assert host.ask(LOOK, CELERY_BROKER_URL="") == before

    host = project(tmp_path / "deletes", database, 'HARBOR_REFRESH = {"RETENTION_DAYS": 1}')
    today = BATCHES.replace("range(200)", "range(3)").replace("editor.create_model(Export)", "pass")
    young, more_waits = host.ask(today, CELERY_BROKER_URL="")
    told = host.run("-m", "django", "harbor", "sweep", CELERY_BROKER_URL="").stdout
    assert told.splitlines() == [
        "Deleted 170 executions with 340 tasks, and 0 old rows.",
        "30 more stay, because the database does not let them be deleted, such as execution "
        f"{batches[0]}: a row names it in exports_export.batch_id.",
    ]
    ended = {*batches[:30], *young}
    left = {*ended, *waits, *more_waits}
    after = host.ask(LOOK, CELERY_BROKER_URL="")
    expected = {"execution": left, "task": left, "change": ended, "job": ended, "result": ended}
    assert {name: set(found) for name, found in after.items()} == expected


def test_the_doctor_says_that_nothing_is_deleted_until_the_project_has_decided(
    tmp_path: Path, database: str
) -> None:
    doctor = """
        from harbor_refresh.tasks.checks.facts import Facts
        from harbor_refresh.tasks.checks.postgres import retention

        print(json.dumps([[one.msg, one.hint] for one in retention(Facts())]))
    """
    host = project(tmp_path / "silent", database)
    assert host.ask(doctor, CELERY_BROKER_URL="") == []
    host.ask(BATCHES.replace("range(200)", "range(2)"), CELERY_BROKER_URL="")
    ((what, todo),) = host.ask(doctor, CELERY_BROKER_URL="")
    assert what.startswith("Nothing is deleted: 2 executions have ended and stay, with tasks, jobs and results")
    assert 'HARBOR_REFRESH = {"RETENTION_DAYS": 90}, or 0 to keep everything.' in todo
    for said in (0, 90):
        decided = project(tmp_path / f"said{said}", database, f'HARBOR_REFRESH = {{"RETENTION_DAYS": {said}}}')
        assert decided.ask(doctor, CELERY_BROKER_URL="") == []
