"""begin: of all messages of a job, the one of its next run begins it, once, if its worker is alive. Of two that
decide about one run at once the first stands."""

from dataclasses import dataclass, replace
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models import Q

from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.models import Execution
from harbor_refresh.executions.status import Status
from harbor_refresh.tasks.jobs.again import retry_failed
from harbor_refresh.tasks.jobs.outcomes import Outcome, take
from harbor_refresh.tasks.jobs.running.handle import Begun
from harbor_refresh.tasks.jobs.running.reaper import EAGER, release
from harbor_refresh.tasks.jobs.running.reaper import running as running_jobs
from harbor_refresh.tasks.jobs.stops import stop_jobs
from harbor_refresh.tasks.models.job import Job
from tests.integration.concurrency import at_once, one_after_the_other
from tests.integration.jobs.sample_jobs import (
    NODE,
    Outbox,
    Sent,
    beats,
    begun,
    failed,
    job,
    recorded,
    rows,
    tasks,
)
from tests.integration.sample_executions import delete

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def message(outbox: Outbox) -> Sent:
    """The first message of the job j."""
    beats()
    recorded("j")
    (sent,) = outbox.take()
    return sent


@pytest.mark.parametrize(
    ("max_attempts", "node", "then"),
    [(2, NODE, "off"), (1, NODE, "on"), (2, EAGER, "on")],
    ids=["first", "last", "eager"],
)
def test_a_begin_waits_for_the_disk_if_the_job_may_not_begin_again(
    max_attempts: int, node: int, then: str, outbox: Outbox
) -> None:
    beats()
    recorded("j", max_attempts=max_attempts)
    with transaction.atomic(), connection.cursor() as cursor:
        assert begun(*outbox.take(), node=node)
        cursor.execute("SHOW synchronous_commit")
        assert cursor.fetchone() == (then,)


def test_a_run_begins_as_quickly_beside_many_jobs_that_were_sent(outbox: Outbox) -> None:
    """Until a kept plan is made, PostgreSQL plans for each call; and without statistics it takes any index."""
    beats()
    recorded(*map(str, range(100)))
    messages = outbox.take()
    with transaction.atomic(), connection.cursor() as cursor:
        assert all(begun(one) for one in messages[:20])
        cursor.execute("SELECT pg_stat_get_xact_tuples_returned('job_sent'::regclass)")
        assert cursor.fetchone() == (0,)


@pytest.mark.parametrize(
    ("other", "node"),
    [({"job": "another job"}, NODE), ({"task_id": 99}, NODE), ({"number": 1}, NODE), ({}, 2)],
    ids=["job", "database", "run", "dead node"],
)
def test_a_message_of_another_job_run_or_database_begins_nothing_and_a_dead_worker_begins_none(
    other: dict[str, Any], node: int, message: Sent
) -> None:
    assert begun(replace(message, **other), node=node) is None
    assert rows() == {"j": ("sent", 0)}


def test_the_message_of_an_earlier_run_begins_nothing_after_a_retry(message: Sent, outbox: Outbox) -> None:
    execution = job("j").task.execution
    run = begun(message)
    assert run
    take([Outcome(run.run, Status.ERROR)])
    assert retry_failed(execution.pk) == 1
    assert begun(message) is None
    (again,) = outbox.take()
    assert begun(again)
    failed(execution, "j")
    assert retry_failed(execution.pk) == 1
    assert begun(again) is None
    delete([execution.pk])
    assert [begun(one) for one in (message, again, *outbox.take())] == [None] * 3


def test_of_ten_workers_with_one_message_one_begins(message: Sent) -> None:
    found = at_once(*[lambda: begun(message)] * 10)
    assert len([one for one in found if one]) == 1


# two at once: the second waits for the first, finds the run over, and changes nothing


@dataclass
class Situation:
    execution: Execution
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


@pytest.fixture
def running(outbox: Outbox) -> Situation:
    """The job j runs."""
    beats()
    execution = recorded("j")
    (message,) = outbox.take()
    run = begun(message)
    assert run
    return Situation(execution, run, running_jobs(Q()))


WINNERS = {
    "end": ("ended", "Success"),
    "try_again": ("waiting", "Scheduled"),
    "release": ("sent", "Pending"),
    "stop": ("ended", "Stopped"),
    "report": ("ended", "Error"),
}


@pytest.mark.parametrize("first", WINNERS)
def test_of_two_outcomes_of_one_run_the_first_stands(first: str, running: Situation) -> None:
    _, stood = one_after_the_other(getattr(running, first), running.end)
    assert not stood
    assert (rows()["j"][0], tasks()["j"][0]) == WINNERS[first]


@pytest.mark.parametrize("first", ["end", "try_again", "release"])
def test_a_stop_comes_after_it_and_finds_the_job_as_it_is(first: str, running: Situation) -> None:
    one_after_the_other(getattr(running, first), running.stop)
    assert tasks()["j"][0] == ("Success" if first == "end" else "Stopped")
    assert rows()["j"][0] == "ended"


def test_a_message_does_not_begin_a_job_that_is_being_stopped(outbox: Outbox) -> None:
    beats()
    execution = recorded("j")
    (message,) = outbox.take()
    _, begins = one_after_the_other(lambda: stop_jobs(execution.pk), lambda: begun(message))
    assert begins is None
    assert rows()["j"] == ("ended", 0)


def test_a_stop_finds_the_job_that_has_just_begun(outbox: Outbox) -> None:
    beats()
    execution = recorded("j")
    (message,) = outbox.take()
    run, _ = one_after_the_other(lambda: begun(message), lambda: stop_jobs(execution.pk))
    assert run
    assert rows()["j"] == ("ended", 1)
    assert job("j").node is None
