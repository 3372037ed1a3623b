"""start: jobs are recorded with the transaction they are started in, and published only when it is committed."""

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from celery import Celery, chain, chord, group, signature
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from executions.errors import Refused
from executions.models import Execution, Task
from tasks.jobs import Handle, TrackedJob
from tasks.jobs import start as start_signatures
from tasks.jobs.lifecycle.job_creation import NewJob, start
from tasks.models import Job
from tests.integration.concurrency import at_once
from tests.integration.jobs.sample_jobs import Outbox, known, recorded, state
from tests.integration.redis_state import Redis

app = Celery("a team", set_as_current=False)


@app.task(base=TrackedJob, name="a.job", shared=False)
def a_job(job: Handle) -> None:
    pass


@app.task(name="a.task", shared=False)
def no_job() -> None:
    pass


def job_with(**options: Any) -> Any:
    """Another job of the team, with this said on its task."""

    def job_of_its_own(job: Handle) -> None:
        pass

    return app.task(base=TrackedJob, name=f"with {options}", shared=False, **options)(job_of_its_own)


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


def cyclic() -> list[Any]:
    value: list[Any] = []
    value += [value, value]
    return value


@pytest.mark.parametrize(
    "argument",
    [
        *(object(), float("nan"), float("inf"), b"x", {1}, "a\x00b", "half a \ud800 pair", [10**5_000]),
        *(deep(101), cyclic(), ["x" * 2_000_000]),
    ],
)
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
    with pytest.raises(Refused, match="takes the result of the job before it"):
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


@pytest.mark.parametrize("name", ["", "n" * 256, "n\x00", None, 5])
def test_a_job_without_a_name_that_can_be_stored_is_refused(name: Any) -> None:
    with pytest.raises(Refused, match="a job takes a name of 1 to 255 characters"):
        start("SCAN", [[NewJob(name)]])
    assert not Execution.objects.exists()


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({"args": "abc"}, "in a list and a dict"),
        ({"args": None}, "in a list and a dict"),
        ({"kwargs": [1]}, "in a list and a dict"),
        ({"kwargs": {1: 2}}, "takes names as keywords, and got 1"),
        ({"job_id": ""}, "takes an id of 1 to 64 characters"),
        ({"job_id": "x" * 65}, "takes an id of 1 to 64 characters"),
    ],
)
def test_a_job_that_cannot_be_stored_is_refused(told: dict[str, Any], why: str) -> None:
    with pytest.raises(Refused, match=why):
        start("SCAN", [[NewJob("a.job", **told)]])
    assert not Execution.objects.exists()


def test_jobs_with_large_arguments_are_written_a_few_at_a_time(outbox: Outbox) -> None:
    outbox.is_away = True
    with CaptureQueriesContext(connection) as queries:
        start("SCAN", [[NewJob("a.job", ["x" * 900_000])] for _ in range(10)])
    inserts = [len(one["sql"]) for one in queries if 'INTO "execution_job"' in one["sql"]]
    assert [round(size / 900_000) for size in inserts] == [4, 4, 2]
    assert [len(args[0]) for args in Job.objects.values_list("args", flat=True)] == [900_000] * 10


@pytest.mark.parametrize(
    ("jobs", "why"),
    [
        (None, "and got None$"),
        (5, "and got 5$"),
        ("abc", "and got 'a' among them$"),
        ([a_job], "among them$"),
        ([None], "and got None among them$"),
        (a_job.s(), "by itself$"),
        (chain(a_job.si(), a_job.si()), "by itself$"),
        (chord([a_job.s()], a_job.s()), "by itself$"),
        ([chord([a_job.s()], a_job.s())], "chord cannot be among them$"),
        ([group([a_job.s(), a_job.s()])], "group cannot be among them$"),
        ([chain(a_job.si(), group([a_job.si(), a_job.si()]))], "group cannot be among them$"),
        ([a_job.map([1, 2])], "map cannot be among them$"),
        ([a_job.starmap([(1,), (2,)])], "starmap cannot be among them$"),
        ([a_job.chunks([(1,), (2,)], 1)], "chunks cannot be among them$"),
        ([app.signature("no.such.task")], "^no task 'no.such.task' is registered here: import the module"),
        ([signature("no.such.task")], "^no task 'no.such.task' is registered here: import the module"),
        ([no_job.s()], "^a.task is no tracked job: write @app.task"),
        ([a_job.s().set(link=a_job.s())], "^a.job: takes the options queue, .*; got link$"),
        ([a_job.s().set(eta="2020-01-01T00:00:00")], "; got eta$"),
    ],
)
def test_what_is_no_list_of_jobs_is_refused_with_a_hint(jobs: Any, why: str) -> None:
    with pytest.raises(Refused, match=why):
        start_signatures("SCAN", jobs=jobs)
    assert not Execution.objects.exists()


NO_SECONDS = (0, -5, "5", [5], True, 366 * 24 * 3600 + 1, float("nan"), float("inf"), 10**400)


@pytest.mark.parametrize(
    ("name", "odd", "takes"),
    [
        *(("time_limit", odd, "a number of seconds above 0 and at most 31,622,400") for odd in NO_SECONDS),
        *(("soft_time_limit", odd, "a number of seconds above 0") for odd in NO_SECONDS),
        *(("countdown", odd, "a number of seconds from 0 to 31,622,400") for odd in NO_SECONDS[1:]),
        *(("expires", odd, "a number of seconds above 0 .*, or a moment") for odd in NO_SECONDS),
        *(("expires", odd, ".* or a moment") for odd in ("", "soon", {"a": 1}, "9999-12-31T23:59:59-10:00")),
        *(("priority", odd, "a whole number from 0 to 9") for odd in (-1, 10, "1", 1.5, [1], True)),
        *(("queue", odd, "text of 1 to 255 characters") for odd in ("", "q" * 256, 5, {"a": 1}, "q\x00")),
        *(("routing_key", odd, "text of 1 to 255 characters") for odd in ("", 5, [1])),
    ],
)
def test_an_option_that_would_break_its_message_is_refused(name: str, odd: Any, takes: str) -> None:
    with pytest.raises(Refused, match=f"^a.job: {name} takes {takes}.*, and got "):
        start_signatures("SCAN", jobs=[a_job.s(), a_job.s().set(**{name: odd})])
    assert not Execution.objects.exists()


@pytest.mark.parametrize("name", ["time_limit", "soft_time_limit", "expires"])
def test_an_option_that_stands_on_the_task_is_refused_like_that_of_one_job(name: str) -> None:
    with pytest.raises(Refused, match=f"{name} takes .*, and got 'abc'$"):
        start_signatures("SCAN", jobs=[job_with(**{name: "abc"}).s()])
    assert not Execution.objects.exists()


@pytest.mark.parametrize(
    "job",
    [
        a_job.s().set(time_limit=5, soft_time_limit=50),
        job_with(time_limit=5).s().set(soft_time_limit=50),
        job_with(soft_time_limit=50).s().set(time_limit=5),
        job_with(soft_time_limit=50, time_limit=5).s(),
    ],
)
def test_a_soft_limit_above_the_hard_one_is_refused(job: Any) -> None:
    with pytest.raises(Refused, match=r"soft_time_limit takes at most the time_limit, 5, and got 50$"):
        start_signatures("SCAN", jobs=[job])


def test_options_are_kept_as_json_and_a_countdown_of_none_is_none(outbox: Outbox) -> None:
    soon = datetime(2099, 1, 1, tzinfo=UTC)
    told = {"queue": "slow", "priority": 0, "expires": soon, "time_limit": 2, "soft_time_limit": 1.5}
    start_signatures("SCAN", jobs=[a_job.s().set(**told, countdown=None, routing_key=None)])
    kept = told | {"expires": "2099-01-01T00:00:00+00:00", "routing_key": None}
    assert [message.options for message in outbox.messages] == [kept]
    assert Task.objects.get().status == "Pending"


async def asynchronous(job: Handle) -> None:
    pass


async def asynchronous_in_parts(job: Handle) -> AsyncIterator[int]:
    yield 1


def in_parts(job: Handle) -> Iterator[int]:
    yield 1


@pytest.mark.parametrize("options", [{}, {"autoretry_for": (OSError,)}], ids=["plain", "tried again"])
@pytest.mark.parametrize(
    ("function", "why"),
    [
        (asynchronous, "is an `async def`: a job is a plain function"),
        (asynchronous_in_parts, "is an `async def`: a job is a plain function"),
        (in_parts, "is a generator: a job is a plain function"),
    ],
)
def test_a_job_that_no_worker_would_run_is_refused(function: Any, why: str, options: dict[str, Any]) -> None:
    task = Celery("another", set_as_current=False).task(base=TrackedJob, name="no.job", shared=False, **options)(
        function
    )
    with pytest.raises(Refused, match=f"^no.job {why}"):
        start_signatures("SCAN", jobs=[task.s()])
    assert not Execution.objects.exists()


@pytest.mark.parametrize(
    ("said", "attempts"),
    [
        ({}, 5),
        ({"max_retries": 2}, 5),
        ({"max_retries": 9}, 10),
        ({"max_retries": 10**6}, 32_767),
        ({"max_retries": None}, 5),
        ({"max_retries": 9, "max_attempts": 3}, 3),
        ({"max_attempts": 7}, 7),
    ],
)
def test_a_job_may_begin_as_often_as_its_retries_need_unless_its_task_says_it(
    said: dict[str, Any], attempts: int
) -> None:
    start_signatures("SCAN", jobs=[job_with(**said).s()])
    assert Job.objects.get().max_attempts == attempts
