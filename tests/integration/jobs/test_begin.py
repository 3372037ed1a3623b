"""begin: of all messages of a job, the one of its next run begins it, once, if its worker is alive."""

import threading
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection, transaction

from harbor_refresh.executions.models import Task
from harbor_refresh.executions.status import Status
from harbor_refresh.tasks.jobs.again import retry_failed
from harbor_refresh.tasks.jobs.outcomes import Begun, Outcome, take
from harbor_refresh.tasks.jobs.reaper import EAGER
from tests.integration.jobs.sample_jobs import (
    NODE,
    Outbox,
    Sent,
    beats,
    begun,
    failed,
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


def test_nor_does_the_message_of_a_job_whose_task_was_deleted(message: Sent) -> None:
    delete([Task.objects.get().execution_id])
    assert begun(message) is None


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
    execution = Task.objects.get().execution
    failed(execution, "j")
    retry_failed(execution.pk)
    (again,) = outbox.take()
    run = begun(message)
    assert run is not None, "no run had begun, so this message and the new one are the same"
    assert begun(again) is None
    take([Outcome(run.run, Status.ERROR)])
    retry_failed(execution.pk)
    assert begun(message) is None
    assert tasks()["j"][0] == "Pending"


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
