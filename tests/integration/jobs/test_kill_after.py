"""stop(kill_after=…): what is asked of workers. That they kill is in tests/faults/test_ends_of_jobs.py."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from harbor_refresh.celery import app
from harbor_refresh.executions.errors import Refused
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.tasks.jobs import Handle, TrackedExecution, TrackedJob, start
from harbor_refresh.tasks.models import Job
from harbor_refresh.testing import eager
from tests.integration.command_output import misuse, said
from tests.integration.jobs.sample_jobs import Outbox, beats, begun, ends

pytestmark = pytest.mark.usefixtures("database")


@app.task(base=TrackedJob, name="kill_after.work", shared=False)
def work(job: Handle) -> None:
    pass


def two_of_three_run(outbox: Outbox) -> TrackedExecution:
    beats()
    execution = start("SCAN", jobs=[work.s(), work.s(), work.s()])
    for message in outbox.take()[:2]:
        assert begun(message)
    return execution


def asked() -> int:
    return Job.objects.filter(kill_at__isnull=False).count()


def test_only_runs_that_were_stopped_are_to_be_killed(outbox: Outbox) -> None:
    execution = two_of_three_run(outbox)
    done = execution.tasks.order_by("pk")[0]
    report([Report(done.pk, "Success", done.status_revision)])
    other = two_of_three_run(outbox)
    assert execution.stop(kill_after=30) == 1
    (job,) = Job.objects.filter(kill_at__isnull=False)
    assert (job.task.execution_id, job.state) == (execution.pk, "ended")
    assert job.kill_at
    assert abs(job.kill_at - timezone.now() - timedelta(seconds=30)) < timedelta(seconds=20)
    assert other.progress().counts == {"Pending": 3}


def test_a_job_that_runs_again_is_not_to_be_killed_any_more(outbox: Outbox) -> None:
    execution = two_of_three_run(outbox)
    execution.stop(kill_after=30)
    assert asked() == 2
    execution.resume_stopped()
    assert asked() == 0


def test_a_stop_without_it_asks_for_nothing_and_a_later_one_for_runs_that_were_stopped(outbox: Outbox) -> None:
    execution = two_of_three_run(outbox)
    execution.stop()
    assert asked() == 0
    execution.stop(kill_after=1)
    assert asked() == 2


@pytest.mark.parametrize("given", [0, 0.5, -1, True, "30", float("inf"), 10**9])
def test_another_time_is_refused_and_nothing_is_stopped(given: Any, outbox: Outbox) -> None:
    execution = two_of_three_run(outbox)
    with pytest.raises(Refused, match="stop: kill_after takes a number of seconds from 1 to"):
        execution.stop(kill_after=given)
    assert ends(execution) == "Success"


def test_in_eager_mode_there_is_nothing_to_kill() -> None:
    with eager():
        execution = start("SCAN", jobs=[work.s()], open=True)
        assert (execution.stop(kill_after=30), execution.status) == (0, "Stopped")


def test_the_command_kills_after_so_many_seconds(outbox: Outbox, capsys: pytest.CaptureFixture[str]) -> None:
    execution, other = two_of_three_run(outbox), two_of_three_run(outbox)
    said("harbor", "stop", execution.pk, "--kill-after", "30")
    execution.refresh_from_db()
    assert (execution.status, asked()) == ("Stopped", 2)
    one = [str(other.pk), "--kill-after"]
    for words in (["--all", "--yes", "--kill-after", "30"], [*one, "0"], [*one, "30", "--vendor", "SCAN"]):
        assert "--kill-after takes a number of seconds from 1 to" in misuse(capsys, "harbor", "stop", *words)
    assert ends(other) == "Success"
