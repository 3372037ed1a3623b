"""Ends that the main process of a worker writes: its message was revoked or rejected, or it took too long."""

import os
import time
from dataclasses import replace
from typing import Any

import pytest
from celery import signals
from celery.utils.objects import Bunch
from celery.worker.request import Request

from harbor_refresh.executions.models import Task
from harbor_refresh.executions.status import Status
from harbor_refresh.tasks.jobs.live_workers import this_worker
from harbor_refresh.tasks.jobs.outcomes import Outcome, header_of, take
from harbor_refresh.tasks.jobs.running import dropped_messages
from harbor_refresh.tasks.jobs.running.dropped_messages import TrackedRequest
from harbor_refresh.tasks.models.job import Job
from tests.integration.concurrency import transaction_held_open
from tests.integration.jobs.sample_jobs import (
    Outbox,
    Sent,
    beats,
    begun,
    database_port,
    recorded,
    rows,
    tasks,
)

pytestmark = pytest.mark.usefixtures("database", "at_once")


@pytest.fixture
def message(outbox: Outbox) -> Sent:
    """That of the job j; this process is a worker."""
    beats(this_worker.id)
    recorded("j")
    (sent,) = outbox.take()
    Job.objects.update(options={"expires": "2026-01-01T00:00:00+00:00"})
    return sent


def request_of(message: Sent) -> Any:
    return Bunch(id=message.job, get=header_of(message.task_id, message.number).get)


def revoked(message: Sent, *, terminated: bool = False) -> None:
    dropped_messages.on_revoked(request_of(message), terminated)


def test_a_run_ends_by_its_own_process_alone(message: Sent) -> None:
    """A failover may lose the begin of a run. Then another one has its number."""
    run = begun(message, node=this_worker.id)
    assert run
    Job.objects.update(process=1)
    assert take([Outcome(run.run, Status.ERROR)]) == []
    revoked(message, terminated=True)
    assert rows() == {"j": ("ended", 1)}, "the main process of its worker knows no more than its worker"


def test_a_message_of_another_database_ends_no_job_of_this_one(message: Sent) -> None:
    """There another job has the task of that id."""
    foreign = replace(message, job="of another database")
    revoked(foreign)
    assert begun(message, node=this_worker.id)
    revoked(foreign, terminated=True)
    assert rows() == {"j": ("running", 1)}


def test_a_dropped_copy_ends_no_run_and_no_job_that_has_another_message(message: Sent, outbox: Outbox) -> None:
    run = begun(message, node=this_worker.id)
    assert run
    revoked(message)
    assert rows() == {"j": ("running", 1)}
    take([Outcome(run.run, Status.SCHEDULED, delay=60)])
    revoked(message)
    revoked(message, terminated=True)
    assert rows() == {"j": ("waiting", 1)}


def rejected(headers: Any) -> None:
    for receiver, answer in signals.task_rejected.send(None, message=Bunch(headers=headers), exc=ValueError("no")):
        assert answer is None, receiver


def test_a_message_that_celery_cannot_read_ends_its_job(message: Sent) -> None:
    rejected({"id": message.job, **header_of(message.task_id, message.number)})
    assert tasks()["j"] == ("Error", 0, 0, "its message cannot be used: no")


def test_a_message_that_celery_cannot_read_ends_no_job_if_it_names_no_run(message: Sent) -> None:
    job, named = message.job, header_of(message.task_id, message.number)
    rejected(None)
    rejected([job])
    rejected(named)
    rejected({"id": job})
    for other in ([job], 7, "", "another", "\ud800", "x" * 65):
        rejected({"id": other, **named})
    for header in (None, "abc", [1], {}, {"task": message.task_id}, {"run": 0}, {"task": "abc", "run": 0}):
        rejected({"id": job, "harbor_job": header})
    for number in (-1, 7, True, "0", 2**31, None):
        rejected({"id": job, **header_of(message.task_id, number)})  # type: ignore[arg-type]
    rejected({"id": job, **header_of(2**64, 0)})
    assert rows() == {"j": ("sent", 0)}


def limited(message: Sent) -> TrackedRequest:
    request = TrackedRequest.__new__(TrackedRequest)
    request.id, request.worker_pid = message.job, os.getpid()
    request._request_dict = {"id": message.job, **header_of(message.task_id, message.number)}
    return request


@pytest.mark.parametrize("has_begun", [True, False])
def test_a_hard_limit_is_written_before_celery_acknowledges_the_message(
    has_begun: bool, message: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit that strikes before the run has begun takes the message away: the job is sent again."""
    then: list[Any] = []
    monkeypatch.setattr(Request, "on_timeout", lambda *_: then.append((rows()["j"], tasks()["j"][3])))
    if has_begun:
        begun(message, node=this_worker.id)
    limited(message).on_timeout(False, 2)
    limit = (("ended", 1), "TimeLimitExceeded: TimeLimitExceeded(2,)")
    assert then == [limit if has_begun else (("sent", 0), "")]


def test_the_hard_limit_of_a_copy_does_not_end_the_run_in_another_process(
    message: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its begin may hang until the limit, and then its process is killed."""
    monkeypatch.setattr(Request, "on_timeout", lambda *_: None)
    begun(message, node=this_worker.id)
    Job.objects.update(process=1)
    limited(message).on_timeout(False, 2)
    assert rows() == {"j": ("running", 1)}


def test_a_soft_limit_is_for_the_run_itself(message: Sent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Request, "on_timeout", lambda *_: None)
    begun(message, node=this_worker.id)
    limited(message).on_timeout(True, 2)
    assert rows() == {"j": ("running", 1)}


def holds_the_task() -> Task:
    return Task.objects.select_for_update().get(job_id="j")


def test_the_main_process_does_not_wait_for_a_long_transaction(
    message: Sent, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Such as the stop of a million jobs. Nothing else answers the broker."""
    monkeypatch.setattr(Request, "on_timeout", lambda *_: None)
    with transaction_held_open(holds_the_task):
        began = time.monotonic()
        revoked(message)
        begun(message, node=this_worker.id)
        limited(message).on_timeout(False, 2)
        assert time.monotonic() - began < 10
    assert rows() == {"j": ("running", 1)}
    assert caplog.text.count(f"Could not write of task {message.task_id} that") == 2


def test_a_limit_is_written_although_its_task_was_locked_for_a_moment(
    message: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the end of another job, for example, which the same job needs."""
    monkeypatch.setattr(Request, "on_timeout", lambda *_: None)
    monkeypatch.setattr(dropped_messages, "LOCKED_SECONDS", 60)
    begun(message, node=this_worker.id)
    with transaction_held_open(holds_the_task) as commit:
        monkeypatch.setattr(time, "sleep", lambda _: commit())
        limited(message).on_timeout(False, 2)
    assert rows() == {"j": ("ended", 1)}


def test_while_the_database_is_down_an_event_is_logged_and_ends_no_worker(
    message: Sent, caplog: pytest.LogCaptureFixture
) -> None:
    with database_port() as port:
        port.down()
        revoked(message)
    assert f"Could not write of task {message.task_id} that it was revoked" in caplog.text
    assert rows() == {"j": ("sent", 0)}
