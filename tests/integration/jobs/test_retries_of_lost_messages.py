"""A message that is sent again has as many retries as the lost one, so `max_retries` and the backoff go on."""

import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from celery import Celery
from celery import Task as Task_
from celery.exceptions import Retry

from harbor_refresh.executions.models import Task
from harbor_refresh.tasks.jobs import TrackedJob, message_header
from harbor_refresh.tasks.jobs.delivery.followers import deliver_and_publish
from harbor_refresh.tasks.jobs.handle import Handle
from harbor_refresh.tasks.jobs.lifecycle.job_report import JobReport
from harbor_refresh.tasks.jobs.lifecycle.message import Message
from harbor_refresh.tasks.jobs.lifecycle.retries import retry_failed
from harbor_refresh.tasks.jobs.repair.job_recovery import recover_jobs
from harbor_refresh.tasks.models import Job
from tests.integration.jobs.sample_jobs import Outbox
from tests.integration.jobs.test_a_run_in_its_process import one
from tests.integration.redis_state import Clock

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture(autouse=True)
def sent(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The options of the messages that were sent for another try. All of these are lost."""
    sent: list[dict[str, Any]] = []
    monkeypatch.setattr(Task_, "apply_async", lambda *_, **options: sent.append(options))
    return sent


def asks_again(job: Handle) -> None:
    job.retry(countdown=0, max_retries=5)


def run(
    message: Message, work: Callable[[Handle], Any], header: dict[str, Any] | None = None, retries: int = 0
) -> None:
    task = Celery("a team", set_as_current=False).task(base=TrackedJob, name=message.name, shared=False)(work)
    header = header or message_header.of(message)
    task.push_request(id=message.job, called_directly=False, args=[], kwargs={}, retries=retries, **header)
    with contextlib.suppress(Retry):
        task()
    task.pop_request()


def sent_again(outbox: Outbox, clock: Clock) -> Message:
    """The message that recovery sends when the process that had to send it has been silent for long."""
    clock.move(60)
    recover_jobs(outbox.publish)
    clock.move(60)
    recover_jobs(outbox.publish)
    (message,) = outbox.messages
    outbox.messages.clear()
    return message


def retries_of(message: Message) -> int:
    found: int = message.options.get("retries", 0)
    return found


@pytest.mark.parametrize("is_reported", [True, False])
def test_a_message_for_another_try_that_was_lost_comes_again_with_its_retries(
    is_reported: bool, outbox: Outbox, reports: list[JobReport], clock: Clock
) -> None:
    message = one(outbox)
    for retries in range(3):
        run(message, asks_again, retries=retries)
        if is_reported:
            deliver_and_publish(reports)
        reports.clear()
        message = sent_again(outbox, clock)
        assert retries_of(message) == retries + 1
    assert Task.objects.get().status_message == "it asked for another try"


@pytest.mark.parametrize("reported_by", ["the run that asked", "the run of the try"])
def test_a_run_that_dies_is_no_retry_and_loses_none(
    reported_by: str, outbox: Outbox, reports: list[JobReport], clock: Clock, sent: list[dict[str, Any]]
) -> None:
    run(one(outbox), asks_again, retries=1)
    if reported_by == "the run that asked":
        deliver_and_publish(reports)
    reports.clear()

    def dies(job: Handle) -> None:
        raise SystemExit

    options = sent[0]
    assert options["retries"] == 2
    message = Message.of(job_with_followers(), "")
    with contextlib.suppress(SystemExit):
        run(message, dies, options["headers"], retries=2)
    if reported_by == "the run of the try":
        deliver_and_publish(reports)
    assert retries_of(sent_again(outbox, clock)) == 2


def job_with_followers() -> Job:
    job = Job.objects.select_related("task").get()
    job.has_followers = False  # type: ignore[attr-defined]  # of `publishable`
    return job


def test_a_job_that_is_tried_again_by_hand_has_no_retries(outbox: Outbox, reports: list[JobReport]) -> None:
    message = one(outbox)
    run(message, asks_again, retries=3)
    asked = [*reports]
    deliver_and_publish(asked)
    assert Job.objects.get().options == {"retries": 4}
    task = Task.objects.get()
    ended = JobReport("a", task.pk, task.status_revision, "Error")
    deliver_and_publish([ended])
    assert retry_failed(task.execution_id) == 1
    assert Job.objects.get().options == {}
    deliver_and_publish([replace(one, retries=9) for one in asked])  # a report that was late
    assert Job.objects.get().options == {}
    assert [retries_of(message) for message in outbox.messages] == [0]


def test_an_older_report_takes_no_retries_away(outbox: Outbox, reports: list[JobReport]) -> None:
    message = one(outbox)
    pk = Task.objects.get().pk
    deliver_and_publish([JobReport(message.job, pk, 2, "Scheduled", retries=2)])
    deliver_and_publish([JobReport(message.job, pk, 2, "Running", retries=1)])
    deliver_and_publish([JobReport("another", pk, 3, "Running", retries=7)])
    assert Job.objects.get().options == {"retries": 2}
