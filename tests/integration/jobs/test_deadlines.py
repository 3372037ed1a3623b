"""deadline: what has not ended by then is stopped, once, and says so."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from celery import shared_task
from django.db import IntegrityError
from django.db.models import F
from django.db.models.functions import Now
from django.test import Client
from django.utils import timezone

from harbor_refresh.executions.errors import QueueUnavailable, Refused
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.models import Execution
from harbor_refresh.executions.news import callbacks
from harbor_refresh.tasks.celery_tasks import recover_stale
from harbor_refresh.tasks.jobs import Handle, TrackedExecution, TrackedJob, start
from harbor_refresh.tasks.jobs.terms import OVERDUE, carry_out
from harbor_refresh.tasks.models import Job
from harbor_refresh.tasks.models.terms import Failure, Terms
from harbor_refresh.testing import eager
from tests.integration.jobs.sample_jobs import Outbox, beats, begun, ends

pytestmark = pytest.mark.usefixtures("database")

ran: list[str] = []


@shared_task(base=TrackedJob, name="deadlines.work")
def work(job: Handle, name: str = "", seconds: float = 0) -> None:
    ran.append(name)
    until = time.monotonic() + seconds
    while not job.should_stop() and time.monotonic() < until:
        time.sleep(0.05)


@shared_task(name="deadlines.told")
def told() -> None:
    """A callback."""


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    ran.clear()


def worked(jobs: int = 3, deadline: Any = 3600, **options: Any) -> TrackedExecution:
    return start("SCAN", jobs=[work.s(str(number)) for number in range(jobs)], deadline=deadline, **options)


def pass_time(seconds: float = 3601) -> None:
    Terms.objects.update(deadline=F("deadline") - timedelta(seconds=seconds))


def statuses(execution: Execution) -> tuple[str, list[str]]:
    refresh([execution.pk])
    execution.refresh_from_db()
    return execution.status, list(execution.tasks.order_by("pk").values_list("status", flat=True))


def test_what_has_not_ended_by_then_is_stopped_and_says_so(outbox: Outbox, redis: Any) -> None:
    """By the pass that beat asks for every few seconds."""
    execution, other = worked(), worked()
    beats()
    assert begun(outbox.take()[1])
    ends_one = execution.tasks.order_by("pk")[0]
    report([Report(ends_one.pk, "Success", 0)])
    pass_time(3000)
    recover_stale()
    assert statuses(execution) == ("Running", ["Success", "Pending", "Pending"])
    Terms.objects.filter(pk=execution.pk).update(deadline=Now())
    recover_stale()
    assert statuses(execution) == ("Stopped", ["Success", "Stopped", "Stopped"])
    assert execution.status_message == OVERDUE == "its deadline passed"
    assert list(execution.tasks.order_by("pk").values_list("status_message", flat=True)) == ["", OVERDUE, OVERDUE]
    assert statuses(other)[0] == "Running"
    assert set(Job.objects.filter(task__execution=execution).values_list("state", flat=True)) == {"ended"}


def test_a_deadline_is_kept_while_the_redis_of_the_queue_is_away(
    outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With another broker the pass comes all the same, and a deadline needs PostgreSQL alone."""

    def away(**_: Any) -> int:
        raise QueueUnavailable("Redis: away")

    execution = worked(1)
    pass_time()
    monkeypatch.setattr("harbor_refresh.tasks.celery_tasks.recover", away)
    monkeypatch.setattr("harbor_refresh.tasks.celery_tasks.waiting", lambda queue: 0)
    with pytest.raises(QueueUnavailable):
        recover_stale()
    assert statuses(execution) == ("Stopped", ["Stopped"])


def test_a_failure_whose_consequences_the_database_refuses_holds_up_no_deadline(
    outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(execution_id: int) -> None:
        raise IntegrityError

    execution = worked(2, on_first_error=told.si())
    Failure.objects.create(execution_id=execution.pk)
    pass_time()
    monkeypatch.setattr(callbacks, "tell_first_failure", refuse)
    carry_out()
    assert statuses(execution)[1] == ["Stopped", "Stopped"]
    assert Failure.objects.exists()


def test_an_execution_that_has_ended_keeps_its_status(outbox: Outbox) -> None:
    ended, unseen = worked(), worked()
    ends(ended)
    report(Report(pk, "Success", 0) for pk in unseen.tasks.values_list("pk", flat=True))
    pass_time()
    assert carry_out() == 2
    for one in (ended, unseen):
        assert (statuses(one)[0], one.status_message) == ("Success", "")
    assert carry_out() == 0


def test_what_runs_again_after_it_has_no_deadline(outbox: Outbox) -> None:
    execution = worked()
    pass_time()
    carry_out()
    assert execution.resume_stopped() == 3
    assert (carry_out(), statuses(execution)[0], execution.status_message) == (0, "Running", "")
    ends(execution)
    assert execution.status == "Success"


def test_what_runs_again_before_it_is_stopped_by_it(outbox: Outbox) -> None:
    execution = worked()
    ends(execution, "Error")
    assert execution.retry_failed() == 3
    assert carry_out() == 0
    pass_time()
    assert carry_out() == 1
    assert statuses(execution) == ("Stopped", ["Stopped"] * 3)
    assert execution.status_message == OVERDUE


def test_an_open_execution_is_closed_by_it_and_children_are_stopped(outbox: Outbox) -> None:
    parent = worked(0, open=True)
    child = start("SCAN", jobs=[work.s()], parent=parent)
    pass_time()
    assert carry_out() == 1
    assert (statuses(parent)[0], statuses(child)[0]) == ("Stopped", "Stopped")
    assert parent.status_message == OVERDUE
    assert child.resume_stopped() == 1
    assert (statuses(parent)[0], parent.status_message) == ("Running", "")


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        (lambda _: 90, 90),
        (lambda moment: moment.replace(tzinfo=None), 2 * 86400),
        (lambda moment: moment.isoformat(), 2 * 86400),
    ],
    ids=["seconds", "without a zone", "text"],
)
def test_it_is_seconds_or_a_moment(given: Callable[[datetime], Any], seconds: float, outbox: Outbox) -> None:
    worked(deadline=given(datetime.now(UTC) + timedelta(days=2)))
    deadline = Terms.objects.get().deadline
    assert deadline
    assert abs((deadline - timezone.now()).total_seconds() - seconds) < 600


@pytest.mark.parametrize("given", [0, True, "soon", [], float("nan"), 400 * 86400, timedelta(1), "2020-01-01"])
def test_another_deadline_is_refused(given: Any, outbox: Outbox) -> None:
    with pytest.raises(
        Refused, match=r"start: deadline takes a number of seconds above 0 .*, or a moment that is still to come"
    ):
        worked(deadline=given)
    assert not Execution.objects.exists()


def test_in_eager_mode_no_job_begins_after_it() -> None:
    with eager():
        execution = start("SCAN", jobs=[work.s("a", 0.6), work.s("b")], deadline=0.3)
    assert (ran, execution.status, execution.progress().counts) == (["a"], "Stopped", {"Success": 1, "Stopped": 1})


def test_the_page_of_an_execution_tells_its_terms(admin: Client, outbox: Outbox) -> None:
    execution, without = worked(once="tonight", on_failure="stop"), start("SCAN", jobs=[work.s()])
    deadline = timezone.localtime(Terms.objects.get().deadline)
    pages = [
        admin.get(f"/admin/harbor_executions/execution/{one.pk}/change/").content.decode()
        for one in (execution, without)
    ]
    text = f"once: tonight; deadline: {deadline:%Y-%m-%d %H:%M:%S}; a failed job stops the rest"
    assert [text in one for one in pages] == [True, False]
    assert "terms_of_it" not in pages[1]
