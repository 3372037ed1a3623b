"""The worker of a test: a thread of its process, with a broker in memory, and without Redis."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from celery import chain, current_app, shared_task
from redis import Redis

from harbor_refresh.executions.models import Task
from harbor_refresh.tasks.jobs import EndedExecution, Handle, TrackedJob, start
from harbor_refresh.tasks.jobs.starting.declarations import NewJob
from harbor_refresh.testing import fail_job, worker
from tests import started
from tests.waiting import wait_for

said: list[Any] = []
go_on = threading.Event()


@pytest.fixture(autouse=True)
def jobs_run_in_a_worker(database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No command reaches Redis."""

    def refuse(*args: Any, **_: Any) -> None:
        raise AssertionError(f"a command to Redis: {args[1:]}")

    said.clear()
    before = current_app.conf.broker_url
    monkeypatch.setattr(Redis, "execute_command", refuse)
    with worker():
        assert current_app.connection_for_write().transport.driver_type == "memory"
        yield
    assert current_app.connection_for_write().as_uri(include_password=True).startswith(before)


@shared_task(base=TrackedJob, name="in_process.say")
def say(job: Handle, *words: Any) -> Any:
    said.append((*words, threading.current_thread() is threading.main_thread()))
    return words[-1]


@shared_task(base=TrackedJob, name="in_process.impatient")
def impatient(job: Handle, tries: int) -> None:
    said.append((tries, job._task.request.retries))
    if tries:
        job.retry(args=[tries - 1], countdown=0.1)


class Guarded(TrackedJob):
    abstract = True

    def before_start(self, *_: Any) -> None:
        said.append("before")
        raise LookupError("no tenant")


@shared_task(base=Guarded, name="in_process.guarded")
def guarded(job: Handle) -> None:
    said.append("run")


@shared_task(name="in_process.not_converted")
def not_converted() -> None:
    said.append("run")


@shared_task(name="in_process.takes_all")
def takes_all(**_: Any) -> None:
    said.append("run")


@shared_task(name="in_process.tries_again", bind=True, autoretry_for=(Exception,))
def tries_again(_: Any) -> None:
    said.append("run")


class Patient(TrackedJob):
    abstract = True

    def before_start(self, *_: Any) -> None:
        if not said:
            said.append("before")
            raise self.retry(countdown=0)


@shared_task(base=Patient, name="in_process.patient")
def patient(job: Handle, word: str) -> None:
    said.append(word)


@shared_task(base=TrackedJob, name="in_process.rests")
def rests(job: Handle) -> None:
    assert go_on.wait(60)


@shared_task(name="in_process.told")
def told(ended: EndedExecution) -> None:
    said.append(ended.status)


def test_jobs_run_in_the_thread_of_the_worker() -> None:
    execution = start("SCAN", jobs=[chain(say.s(1), say.s(2)), say.s(3)], on_success=told.s())
    assert execution.wait(timeout=60) == "Success"
    assert execution.progress().counts == {"Success": 3}
    wait_for(lambda: "Success" in said, "the callback")
    assert said[-1] == "Success"
    assert sorted(said[:-1]) == [(1, False), (1, 2, False), (3, False)]
    assert said.index((1, False)) < said.index((1, 2, False))


def test_a_retry_waits_for_its_countdown_and_failures_are_tried_again() -> None:
    assert start("SCAN", jobs=[impatient.s(2)]).wait(timeout=60) == "Success"
    assert said == [(2, 0), (1, 1), (0, 2)]
    with fail_job("in_process.say", times=1, with_=OSError("disk")):
        execution = start("SCAN", jobs=[say.s(1)])
        assert execution.wait(timeout=60) == "Error"
        assert execution.retry_failed() == 1
        assert execution.wait(timeout=60) == "Success"


def test_a_job_whose_hook_raises_before_its_run_ends_and_its_message_does_not_come_again() -> None:
    execution = start("SCAN", jobs=[guarded.s()])
    assert execution.wait(timeout=60) == "Error"
    assert execution.tasks.get().status_message == "LookupError: no tenant"
    assert said == ["before"]


@pytest.mark.parametrize(("name", "ran"), [("not_converted", []), ("tries_again", []), ("takes_all", ["run"])])
def test_a_job_ends_in_a_worker_whose_code_has_it_as_a_plain_task(name: str, ran: list[str]) -> None:
    """The worker was not restarted after the task had been converted. A function that takes any argument runs."""
    execution = started.start("SCAN", [[NewJob(f"in_process.{name}")]])
    wait_for(lambda: Task.objects.get(execution=execution.pk).status == "Error", "the end of the job")
    why = Task.objects.get(execution=execution.pk).status_message
    assert why == "the worker that got it has older code, without base=TrackedJob: restart the worker"
    assert said == ran


def test_a_hook_before_the_run_may_ask_for_another_try() -> None:
    assert start("SCAN", jobs=[patient.s("a")]).wait(timeout=60) == "Success"
    assert said == ["before", "a"]


def test_a_job_that_expires_before_it_begins_is_stopped() -> None:
    go_on.clear()
    execution = start("SCAN", jobs=[rests.s(), say.s(1).set(expires=0.1)])
    time.sleep(0.2)
    go_on.set()
    assert execution.wait(timeout=60) == "Stopped"
    assert execution.tasks.get(status="Stopped").status_message == "it expired before it began"
    assert said == []


PROGRAM = """
import celery, django

django.setup()
from harbor_refresh import testing

app = celery.Celery("a team")
app.config_from_object({"broker_url": "redis://127.0.0.1:1/0"})
with testing.eager():
    print(app.conf.task_always_eager)
app = celery.Celery("another team")
app.config_from_object({"broker_url": "redis://127.0.0.1:1/0"})
with testing.patch.dict(testing._changes(app), testing.SETTINGS):
    print(app.conf.broker_url)
print(app.conf.task_always_eager, app.conf.broker_url)
"""


def test_a_project_whose_app_has_read_no_setting_yet_sends_nothing_to_its_broker() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "memory://", "False", "redis://127.0.0.1:1/0"]
