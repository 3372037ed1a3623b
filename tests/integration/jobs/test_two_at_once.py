"""Two decide about one run at once: the second waits for the first, finds the run over, and changes nothing."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models import Q

from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.models import Execution
from harbor_refresh.executions.status import Status
from harbor_refresh.tasks.jobs.outcomes import Begun, Outcome, take
from harbor_refresh.tasks.jobs.reaper import release
from harbor_refresh.tasks.jobs.reaper import running as running_jobs
from harbor_refresh.tasks.jobs.stops import stop_jobs
from harbor_refresh.tasks.models.job import Job
from tests.integration.jobs.sample_jobs import Outbox, Sent, beats, begun, job, recorded, rows, tasks
from tests.waiting import wait_for

pytestmark = pytest.mark.usefixtures("database")


@dataclass
class Situation:
    execution: Execution
    message: Sent
    run: Begun
    lost: list[Job]

    def end(self) -> Any:
        return take([Outcome(self.run.run, Status.SUCCESS)])

    def try_again(self) -> Any:
        return take([Outcome(self.run.run, Status.SCHEDULED)])

    def release(self) -> Any:
        return release(self.lost)

    def stop(self) -> Any:
        return stop_jobs(self.execution.pk)

    def report(self) -> Any:
        return report([Report(self.run.run.task_id, Status.ERROR)])

    def begin(self) -> Any:
        return begun(self.message)


@pytest.fixture
def running(outbox: Outbox) -> Situation:
    """The job j runs."""
    beats()
    execution = recorded("j")
    (message,) = outbox.take()
    run = begun(message)
    assert run
    return Situation(execution, message, run, running_jobs(Q()))


def waits_for_a_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return bool(cursor.fetchone()[0])


def at_once(first: Callable[[], Any], second: Callable[[], Any]) -> tuple[Any, Any]:
    """Do the second while the first is done and not committed. Returns what both return."""
    answers: list[Any] = []

    def work() -> None:
        try:
            answers.append(second())
        finally:
            connection.close()

    with transaction.atomic():
        done = first()
        thread = threading.Thread(target=work)
        thread.start()
        wait_for(lambda: waits_for_a_lock() or not thread.is_alive(), "the second to wait for the first")
    thread.join()
    return done, answers[0]


WINNERS = {
    "end": ("ended", "Success"),
    "try_again": ("waiting", "Scheduled"),
    "release": ("sent", "Pending"),
    "stop": ("ended", "Stopped"),
    "report": ("ended", "Error"),
}


@pytest.mark.parametrize("second", ["end", "try_again", "release"])
@pytest.mark.parametrize("first", WINNERS)
def test_of_two_outcomes_of_one_run_the_first_stands(first: str, second: str, running: Situation) -> None:
    _, answer = at_once(getattr(running, first), getattr(running, second))
    assert not answer
    assert (rows()["j"][0], tasks()["j"][0]) == WINNERS[first]


@pytest.mark.parametrize("first", ["end", "try_again", "release"])
def test_a_stop_comes_after_it_and_finds_the_job_as_it_is(first: str, running: Situation) -> None:
    at_once(getattr(running, first), running.stop)
    assert tasks()["j"][0] == ("Success" if first == "end" else "Stopped")
    assert rows()["j"][0] == "ended"


def test_a_message_does_not_begin_a_job_that_is_being_stopped(outbox: Outbox) -> None:
    beats()
    execution = recorded("j")
    (message,) = outbox.take()
    _, begins = at_once(lambda: stop_jobs(execution.pk), lambda: begun(message))
    assert begins is None
    assert rows()["j"] == ("ended", 0)


def test_a_stop_finds_the_job_that_has_just_begun(outbox: Outbox) -> None:
    beats()
    execution = recorded("j")
    (message,) = outbox.take()
    run, _ = at_once(lambda: begun(message), lambda: stop_jobs(execution.pk))
    assert run
    assert rows()["j"] == ("ended", 1)
    assert job("j").node is None
