"""start: jobs are recorded with the transaction they are started in, and published only when it is committed."""

from collections import Counter
from typing import Any

import pytest
from celery import Celery, chain, group
from django.db import connection, transaction

from executions.errors import Refused
from executions.models import Execution, Job, Task
from executions.usecases.jobs import NewJob, start
from tasks.jobs import Handle, TrackedJob
from tasks.jobs import start as start_signatures
from tests.integration.jobs.situations import Outbox, known, recorded, state
from tests.integration.state import Redis, at_once


@Celery("a team", set_as_current=False).task(base=TrackedJob, name="a.job")
def a_job(job: Handle) -> None:
    pass


def deep(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


pytestmark = pytest.mark.usefixtures("database", "clock")


def test_messages_are_sent_after_the_commit_and_not_before(redis: Redis, outbox: Outbox) -> None:
    with transaction.atomic():
        recorded("a", "b")
        assert outbox.taken() == []
    assert outbox.taken() == [("a", 0, 0), ("b", 0, 0)]
    pending = ("Pending", 0, 0, "")
    assert known(redis) == state({"a": pending, "b": pending})


def test_what_is_rolled_back_leaves_nothing_and_sends_nothing(redis: Redis, outbox: Outbox) -> None:
    with transaction.atomic():
        recorded("a")
        transaction.set_rollback(True)
    assert (outbox.taken(), known(redis)) == ([], state({}))
    assert not Execution.objects.exists()


def test_a_start_that_breaks_in_the_middle_leaves_nothing(outbox: Outbox) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE execution_job ADD CONSTRAINT cursed CHECK (name <> 'bad')")
    with pytest.raises(Exception, match="cursed"):
        start("SCAN", [[NewJob("good")], [NewJob("bad")]])
    for model in (Execution, Task, Job):
        assert not model.objects.exists()
    assert outbox.taken() == []


@pytest.mark.parametrize("argument", [object(), float("nan"), "a\x00b", "half a \ud800 pair", deep(101)])
def test_arguments_that_cannot_be_kept_as_json_are_refused_before_anything_is_written(
    argument: Any, outbox: Outbox
) -> None:
    with pytest.raises(Refused, match=r"^job bad: takes arguments that are JSON"):
        start("SCAN", [[NewJob("good")], [NewJob("bad", [argument])]])
    assert not Execution.objects.exists()


def test_of_a_unique_job_that_many_start_at_once_one_is_recorded(outbox: Outbox) -> None:
    def start_it() -> int:
        unique = [NewJob("a.job", ["same"], is_unique=True), NewJob("after")]
        return len(start("SCAN", [unique, [NewJob("other")]]).left_out)

    assert sum(at_once(*[start_it] * 8)) == 7
    assert Counter(Job.objects.values_list("name", flat=True)) == {"a.job": 1, "after": 1, "other": 8}
    assert len(outbox.taken()) == 9


@pytest.mark.parametrize("most", [0, -1, 40_000, "5", None])
def test_attempts_that_cannot_be_counted_are_refused(most: Any) -> None:
    with pytest.raises(Refused, match="max_attempts takes a whole number from 1 to 32,767"):
        start("SCAN", [[NewJob("a.job", max_attempts=most)]])


def test_a_unique_job_that_nobody_can_tell_from_others_yet_is_refused() -> None:
    steps = [NewJob("a.job"), NewJob("b.job", is_unique=True, takes_result=True)]
    with pytest.raises(Refused, match="takes what the one before it returns"):
        start("SCAN", [steps])
    with pytest.raises(Refused, match="the same unique job twice"):
        start("SCAN", [[NewJob("a.job", ["x"], is_unique=True), NewJob("a.job", ["x"], is_unique=True)]])
    assert not Execution.objects.exists()


@pytest.mark.parametrize("several", [chain(a_job.si(), a_job.si()), group([a_job.si()])])
def test_what_is_said_of_all_jobs_at_once_is_refused_and_not_lost(several: Any) -> None:
    with pytest.raises(Refused, match="takes options on each of its jobs; got queue on all"):
        start_signatures(
            "SCAN", jobs=several.set(queue="slow") if isinstance(several, group) else [several.set(queue="slow")]
        )
    assert not Execution.objects.exists()
