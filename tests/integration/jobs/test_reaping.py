"""The reaper: a job that has been silent for a day fails. What it does for reports is in test_the_hook.py."""

import logging
from datetime import timedelta

import pytest
from django.db.models.functions import Now

from harbor_refresh.executions.models import Task
from harbor_refresh.tasks.conf import refresh_settings
from harbor_refresh.tasks.jobs import reaper
from harbor_refresh.tasks.jobs.reaper import Reaped, reap
from harbor_refresh.tasks.models.job import Job
from tests.integration.jobs.sample_jobs import (
    NODE,
    Outbox,
    beats,
    begun,
    its_process_looked,
    recorded,
    rows,
    tasks,
    tasks_refuse,
)

pytestmark = pytest.mark.usefixtures("database")

SILENCE = "nothing was heard of it for 24 hours"


@pytest.fixture
def running(outbox: Outbox) -> None:
    """Three jobs run. Their worker is alive."""
    beats()
    recorded("a", "b", "c")
    for message in outbox.take():
        assert begun(message)


def heard(job: str, hours_ago: float) -> None:
    then = Now() - timedelta(hours=hours_ago)
    assert Job.objects.filter(task__job_id=job).update(heard_at=then) == 1


def test_a_job_that_was_silent_for_a_day_fails_with_that_reason(
    running: None, caplog: pytest.LogCaptureFixture
) -> None:
    heard("a", 24.1)
    heard("b", 23.9)
    assert reap() == Reaped(failed=1)
    assert tasks()["a"][0] == "Error"
    assert tasks()["a"][3] == SILENCE
    assert rows() == {"a": ("ended", 1), "b": ("running", 1), "c": ("running", 1)}
    line = "Reaped jobs: 0 reported again, 1 failed for silence"
    assert [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING] == [line]
    assert reap() == Reaped()


def test_to_wait_is_no_silence(outbox: Outbox) -> None:
    recorded("a", "b")
    Job.objects.filter(task__job_id="a").update(state="waiting", sent_at=None)
    for job in "ab":
        heard(job, 1_000)
    assert reap() == Reaped()


def test_a_sign_of_life_is_one_of_the_job_and_not_of_its_worker(running: None) -> None:
    for job in "abc":
        heard(job, 25)
    its = Job.objects.get(task__job_id="b")
    for job, is_heard in (("b", True), ("c", False)):
        its = Job.objects.get(task__job_id=job)
        its_process_looked(its.pk, is_heard=is_heard)
    beats(NODE)
    assert reap() == Reaped(failed=2)
    assert rows()["b"] == ("running", 1)


def test_a_job_whose_end_the_database_refuses_holds_up_no_other(
    running: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert refresh_settings().job_hours == 24
    pk = Task.objects.get(job_id="a").pk
    tasks_refuse(f"OLD.id = {pk}")
    for job in "abc":
        heard(job, 25)
    monkeypatch.setattr(reaper, "PAGE", 2)
    assert reap() == Reaped(failed=2)
    assert rows() == {"a": ("running", 1), "b": ("ended", 1), "c": ("ended", 1)}
    assert any(f"task {pk} cannot be written: no more" in one for one in caplog.messages)
