"""begin: of all messages of a job, the one of its next run begins it, once, if its worker is alive."""

import threading
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection, transaction

from harbor_refresh.executions.access.audit import Origin, Person
from harbor_refresh.executions.errors import DatabaseAway
from harbor_refresh.executions.lifecycle.deletion import delete
from harbor_refresh.executions.models import Task
from harbor_refresh.executions.status import Status
from harbor_refresh.tasks.jobs.again import resume_stopped, retry_failed
from harbor_refresh.tasks.jobs.nodes import EAGER
from harbor_refresh.tasks.jobs.running.eager import Sent
from harbor_refresh.tasks.jobs.stops import stop_jobs
from harbor_refresh.tasks.jobs.turns import Begun, Turn, take
from harbor_refresh.tasks.operations.pauses import pause
from tests.integration.jobs.sample_jobs import (
    NODE,
    QUEUE,
    Outbox,
    beats,
    begun,
    chained,
    database_port,
    failed,
    job,
    recorded,
    rows,
    stands,
    tasks,
)

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def message(outbox: Outbox) -> Sent:
    """The first message of the job j."""
    beats()
    recorded("j")
    (sent,) = outbox.take()
    return sent


def test_a_job_that_was_sent_begins_and_its_row_says_where(message: Sent) -> None:
    run = begun(message, process=77)
    assert run is not None
    assert (run.run.number, run.run.revision) == (1, 0)
    found = job("j")
    assert (found.state, found.run, found.node, found.process) == ("running", 1, NODE, 77)


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


@pytest.mark.parametrize("status", ["Success", "Error", "Stopped"])
def test_the_message_of_a_job_that_has_ended_begins_nothing(status: str, message: Sent) -> None:
    stands("j", status)
    assert begun(message) is None
    assert rows() == {"j": ("ended", 0)}


def test_the_message_of_a_job_that_was_stopped_begins_nothing_while_it_waits_again(message: Sent) -> None:
    """Its queue is paused, and the broker still holds its first message."""
    pause(QUEUE, Person("a person", Origin.API))
    execution = Task.objects.get().execution_id
    stop_jobs(execution)
    assert resume_stopped(execution) == 1
    assert begun(message) is None
    assert rows() == {"j": ("waiting", 0)}


def test_a_copy_of_a_message_begins_nothing(message: Sent) -> None:
    assert begun(message)
    assert begun(message) is None
    assert rows() == {"j": ("running", 1)}


def test_nor_does_the_message_of_a_job_whose_task_was_deleted(message: Sent) -> None:
    delete([Task.objects.get().execution_id])
    assert begun(message) is None


@pytest.mark.parametrize("other", [{"job": "another job"}, {"task_id": 99}, {"number": 1}])
def test_a_message_of_another_job_run_or_database_begins_nothing(other: dict[str, Any], message: Sent) -> None:
    assert begun(replace(message, **other)) is None
    assert rows() == {"j": ("sent", 0)}


def test_a_worker_whose_node_is_dead_begins_nothing(message: Sent) -> None:
    assert begun(message, node=2) is None
    assert rows() == {"j": ("sent", 0)}


def test_the_message_of_an_earlier_run_begins_nothing_after_a_retry(message: Sent, outbox: Outbox) -> None:
    execution = Task.objects.get().execution
    failed(execution, "j")
    retry_failed(execution.pk)
    (again,) = outbox.take()
    run = begun(message)
    assert run is not None, "no run had begun, so this message and the new one are the same"
    assert begun(again) is None
    take([Turn(run.run, Status.ERROR)])
    retry_failed(execution.pk)
    assert begun(message) is None
    assert tasks()["j"][0] == "Pending"


def test_a_job_that_waits_for_the_one_before_it_begins_when_its_turn_has_come(outbox: Outbox) -> None:
    beats()
    chained("a", "b")
    (of_a,) = outbox.take()
    run = begun(of_a)
    assert run is not None
    assert run.is_followed
    assert rows()["b"] == ("waiting", 0)
    take([Turn(run.run, Status.SUCCESS, result='"r"')])
    assert rows() == {"a": ("ended", 1), "b": ("waiting", 0)}


def test_of_ten_workers_with_one_message_one_begins(message: Sent) -> None:
    found: list[Begun | None] = []
    ready = threading.Barrier(10)

    def work() -> None:
        try:
            ready.wait()
            found.append(begun(message))
        finally:
            connection.close()

    threads = [threading.Thread(target=work) for _ in range(10)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(found) == 10
    assert len([one for one in found if one]) == 1


def test_while_the_database_is_away_no_job_begins(message: Sent) -> None:
    with database_port() as port:
        port.away()
        with pytest.raises(DatabaseAway):
            begun(message)
        port.back()
        assert begun(message)
