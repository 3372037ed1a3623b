"""A run as the process of a worker has it: what a job returns, raises and says, and what is away meanwhile."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from celery import Celery
from celery import Task as Task_
from celery.exceptions import Ignore, Reject, Retry, SoftTimeLimitExceeded

from harbor_refresh.executions.errors import Refused
from harbor_refresh.executions.models import Task
from harbor_refresh.tasks.conf import refresh_settings
from harbor_refresh.tasks.jobs import Handle, TrackedJob, handle, message_header
from harbor_refresh.tasks.jobs.delivery.followers import deliver_and_publish
from harbor_refresh.tasks.jobs.lifecycle.job_creation import NewJob, start
from harbor_refresh.tasks.jobs.lifecycle.job_report import JobReport
from harbor_refresh.tasks.jobs.lifecycle.job_stops import stop_jobs
from harbor_refresh.tasks.jobs.lifecycle.message import Message
from harbor_refresh.tasks.jobs.records.records import JobRecords, job_records
from harbor_refresh.tasks.jobs.runtime import current_runs, message_check
from harbor_refresh.tasks.queue.node import this_node
from tests.integration.jobs.sample_jobs import Outbox, alive, database_port, known
from tests.integration.redis_state import Clock, Redis, absent_redis

pytestmark = pytest.mark.usefixtures("database", "clock")

Work = Callable[[Handle], Any]


@pytest.fixture
def no_redis(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Redis is away for what the job itself says, from the moment this is called."""
    lonely = absent_redis()
    gone = JobRecords(refresh_settings(), lonely, lonely)
    yield lambda: monkeypatch.setattr(handle, "job_records", lambda: gone)
    lonely.close()


def delivered(message: Message, work: Work, *, redelivered: bool = False, **options: Any) -> Any:
    """The message comes to a worker of an app of its own."""

    def carry_out(job: Handle, *_: Any) -> Any:
        return work(job)

    app = Celery("a team", set_as_current=False)
    task = app.task(base=TrackedJob, name=message.name, shared=False, **options)(carry_out)
    task.push_request(
        id=message.job,
        called_directly=False,
        delivery_info={"redelivered": redelivered},
        **message_header.of(message),
    )
    try:
        return task()
    finally:
        task.pop_request()


def chain_of_two(outbox: Outbox) -> Message:
    start("SCAN", [[NewJob("a.job", job_id="a"), NewJob("b.job", job_id="b", takes_result=True)]])
    return outbox.messages.pop()


def one(outbox: Outbox, job: str = "a") -> Message:
    start("SCAN", [[NewJob("a.job", job_id=job)]])
    return outbox.messages.pop()


def test_a_run_is_recorded_begun_and_ended_and_nothing_is_left_of_it(
    redis: Redis, outbox: Outbox, reports: list[JobReport]
) -> None:
    message = one(outbox)
    pk = Task.objects.get().pk
    assert delivered(message, lambda job: 7) == 7
    begun, ended = JobReport("a", pk, 0, "Running"), JobReport("a", pk, 0, "Success", is_followed=False)
    assert reports == [begun, ended]
    deliver_and_publish(reports)
    assert (known(redis)["tasks"], known(redis)["records"]) == ({"a": ("Success", 0, 0, "")}, {})


def test_what_is_reported_of_a_run_tells_how_many_there_were_before(
    outbox: Outbox, reports: list[JobReport], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Task_, "apply_async", lambda *_, **__: None)
    message = replace(one(outbox), runs=2)
    with pytest.raises(Retry):
        delivered(message, lambda job: job.retry(countdown=0))
    delivered(message, lambda job: None)
    told = [(report.status, report.revision, report.task_report.earlier_runs) for report in reports]
    assert told == [("Running", 0, 2), ("Scheduled", 1, 3), ("Running", 1, 3), ("Success", 1, 3)]


@pytest.mark.parametrize("message", ["a\x00b", "half a \ud800 pair", "x" * 5_000, "", "a|b|c\nd"])
def test_whatever_a_job_raises_its_task_ends_as_error(
    message: str, redis: Redis, outbox: Outbox, reports: list[JobReport]
) -> None:
    def fail(job: Handle) -> None:
        raise ValueError(message)

    offered = one(outbox)
    with pytest.raises(ValueError):
        delivered(offered, fail)
    deliver_and_publish(reports)
    assert Task.objects.get().status == "Error"
    assert Task.objects.get().status_message.startswith("ValueError: " if message else "ValueError")
    assert not Task.objects.get().status_message.endswith(": ")
    assert known(redis)["records"] == {}


@pytest.mark.parametrize("result", [float("nan"), float("inf"), "a\x00b", "half a \ud800 pair", {1: 2}, object()])
def test_whatever_a_job_of_a_chain_returns_its_task_ends(
    result: Any, redis: Redis, outbox: Outbox, reports: list[JobReport]
) -> None:
    delivered(chain_of_two(outbox), lambda job: result)
    deliver_and_publish(reports)
    first = Task.objects.get(job_id="a")
    assert first.status in ("Success", "Error"), "it runs for ever"
    assert known(redis)["records"] == {}
    taken = [json.loads(json.dumps(one.args)) for one in outbox.messages]
    assert len(taken) == (first.status == "Success")


@pytest.mark.parametrize("result", [None, "", "a \\u0000 b", "ä|\n", [1, {"deep": [True, None]}], 10**30])
def test_what_is_json_is_handed_on_as_it_is(result: Any, outbox: Outbox, reports: list[JobReport]) -> None:
    delivered(chain_of_two(outbox), lambda job: result)
    deliver_and_publish(reports)
    assert [one.args for one in outbox.messages] == [[result]]


TYPED = [
    UUID("5b2d0a70-4e4b-4a3f-9d0c-2a3d5f6e7a8b"),
    Decimal("1.20"),
    datetime(2026, 11, 23, tzinfo=UTC),
    b"\xff",
]


def got(
    message: Message,
    work: Callable[..., Any],
    header: dict[str, Any] | None = None,
    *,
    gets_arguments: bool = False,
) -> list[Any]:
    """What the job of this message gets, besides its handle. `header` is that of another try. `gets_arguments`: so
    does `work`."""
    seen: list[Any] = []
    app = Celery("a team", set_as_current=False)

    def carry_out(job: Handle, *args: Any) -> Any:
        seen.extend(args)
        return work(job, *args) if gets_arguments else work(job)

    task = app.task(base=TrackedJob, name=message.name, shared=False)(carry_out)
    header = header or message_header.of(message)
    task.push_request(id=message.job, called_directly=False, args=message.args, kwargs={}, **header)
    with suppress(Retry):
        task(*message.args)
    task.pop_request()
    return seen


def test_a_run_gets_the_values_that_were_given(outbox: Outbox, reports: list[JobReport]) -> None:
    """Whatever the message is written in: here none of its values were decoded."""
    start("SCAN", [[NewJob("a.job", TYPED)]])
    assert got(outbox.messages.pop(), lambda job: None) == TYPED


def test_the_job_after_it_gets_the_values_that_it_returned(outbox: Outbox, reports: list[JobReport]) -> None:
    got(chain_of_two(outbox), lambda job: TYPED)
    deliver_and_publish(reports)
    assert got(outbox.messages.pop(), lambda job: None) == [TYPED]


def test_another_try_gets_the_values_that_it_asked_for(
    outbox: Outbox, reports: list[JobReport], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Task_, "apply_async", lambda *_, **__: None)
    message = one(outbox)
    got(message, lambda job: job.retry(args=TYPED, countdown=0))
    assert got(message, lambda job: None) == TYPED, "the record of the run has them"
    deliver_and_publish(reports[:2])
    job_records().forget(["a"])
    assert got(message, lambda job: None) == TYPED, "the database has them"


@pytest.mark.parametrize(
    ("given", "then"),
    [
        ({}, (["a"], {"depth": 1})),
        ({"args": ["b"]}, (["b"], {"depth": 1})),
        ({"args": ["b", 2]}, (["b", 2], {})),
        ({"kwargs": {"artifact": "b"}}, (["b"], {})),
        ({"kwargs": {"depth": 2}}, (["a"], {"depth": 2})),
        ({"args": [], "kwargs": {"artifact": "b"}}, ([], {"artifact": "b"})),
    ],
)
def test_another_try_keeps_the_arguments_that_are_not_given_again(
    given: dict[str, Any],
    then: Any,
    outbox: Outbox,
    reports: list[JobReport],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As in Celery, which does not count the handle."""
    sent: list[Any] = []
    monkeypatch.setattr(Task_, "apply_async", lambda self, args, kwargs, **_: sent.append((list(args), kwargs)))
    message = one(outbox)
    app = Celery("a team", set_as_current=False)

    def replicate(job: Handle, artifact: str, depth: int = 0) -> None:
        job.retry(**given, countdown=0)

    task = app.task(base=TrackedJob, name=message.name, shared=False)(replicate)
    header = message_header.of(message)
    told = {"args": ["a"], "kwargs": {"depth": 1}}
    task.push_request(id=message.job, called_directly=False, delivery_info={}, **told, **header)
    with pytest.raises(Retry):
        task("a", depth=1)
    task.pop_request()
    assert sent == [then]


def test_a_job_that_checks_in_while_redis_is_away_goes_on(
    outbox: Outbox, reports: list[JobReport], no_redis: Callable[[], None]
) -> None:
    def work(job: Handle) -> str:
        no_redis()
        job.check_in("layer 1")
        return "stopped" if job.should_stop() else "done"

    assert delivered(one(outbox), work) == "done"
    assert [report.status for report in reports] == ["Running", "Success"]


def test_a_message_that_cannot_be_asked_about_ends_no_other_run_of_its_process(
    outbox: Outbox, reports: list[JobReport]
) -> None:
    """In a pool of threads a process has many runs. Their node is alive for as long as it says so by its name."""
    running, doubtful = one(outbox, "runs"), one(outbox, "is asked about")

    def work(job: Handle) -> None:
        with database_port() as port:
            port.away()
            with pytest.raises(Reject):
                delivered(doubtful, lambda _: None, redelivered=True)
        assert job_records().of(["runs"])["runs"].node == this_node.name

    delivered(running, work)
    assert [(report.job, report.status) for report in reports] == [("runs", "Running"), ("runs", "Success")]


def test_a_message_that_comes_again_to_a_redis_that_was_just_emptied_begins_no_second_run(
    redis: Redis, outbox: Outbox, reports: list[JobReport], clock: Clock
) -> None:
    """The first goes on, on a node that is alive. Not all who are have told Redis again what they run."""
    message = one(outbox)
    runs: list[str] = []

    def work(job: Handle) -> None:
        runs.append("first")
        deliver_and_publish(reports)
        redis.flushall()
        clock.move(1)
        alive(redis, this_node.name, clock)
        with suppress(Ignore, Reject):
            delivered(message, lambda _: runs.append("second"), redelivered=True)

    delivered(message, work)
    assert runs == ["first"]


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def deep(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("raised", [Unspeakable(), asyncio.CancelledError(), GeneratorExit()])
def test_whatever_leaves_a_job_ends_it(raised: BaseException, outbox: Outbox, reports: list[JobReport]) -> None:
    def leave(job: Handle) -> None:
        raise raised

    with pytest.raises(type(raised)):
        delivered(one(outbox), leave)
    assert [report.status for report in reports] == ["Running", "Error"]
    assert reports[1].message.startswith(type(raised).__name__)


def test_a_result_without_an_end_ends_its_job_as_error(outbox: Outbox, reports: list[JobReport]) -> None:
    delivered(chain_of_two(outbox), lambda job: deep(5_000))
    assert [report.status for report in reports] == ["Running", "Error"]


def test_a_run_whose_process_is_told_to_end_is_left_to_recovery(outbox: Outbox, reports: list[JobReport]) -> None:
    def leave(job: Handle) -> None:
        raise SystemExit

    node = this_node.name
    with pytest.raises(SystemExit):
        delivered(one(outbox), leave)
    assert [report.status for report in reports] == ["Running"]
    assert job_records().of(["a"])["a"].node == node != this_node.name
    assert current_runs.nodes() == set(), "its heartbeat does not speak for it any more"


def test_a_limit_that_strikes_while_a_run_begins_gives_its_message_back(
    outbox: Outbox, reports: list[JobReport], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody can know whether it was recorded, so this node starts a new life."""
    node, begin = this_node.name, JobRecords.begin

    def begin_and_be_struck(*arguments: Any) -> Any:
        begin(*arguments)
        raise SoftTimeLimitExceeded

    monkeypatch.setattr(JobRecords, "begin", begin_and_be_struck)
    with pytest.raises(Reject) as rejected:
        delivered(one(outbox), lambda job: None)
    assert rejected.value.requeue
    assert job_records().of(["a"])["a"].node == node != this_node.name


def test_a_job_that_calls_itself_like_a_function_is_not_begun_again(
    outbox: Outbox, reports: list[JobReport]
) -> None:
    message = one(outbox)
    app = Celery("a team", set_as_current=False)

    def count(job: Handle, left: int = 3) -> int:
        return 0 if not left else 1 + task(left - 1)

    task = app.task(base=TrackedJob, name=message.name, shared=False)(count)
    task.push_request(id=message.job, called_directly=False, delivery_info={}, **message_header.of(message))
    assert task() == 3
    assert [report.status for report in reports] == ["Running", "Success"]


@pytest.mark.parametrize(
    "later", [lambda: {"countdown": 3600}, lambda: {"eta": datetime.now(UTC) + timedelta(hours=1)}]
)
def test_another_try_waits_until_its_moment_however_that_is_said(
    later: Callable[[], dict[str, Any]],
    outbox: Outbox,
    reports: list[JobReport],
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Task_, "apply_async", lambda *_, **__: None)
    with pytest.raises(Retry):
        delivered(one(outbox), lambda job: job.retry(**later()))
    record = job_records().of(["a"])["a"]
    assert (record.status, record.revision) == ("Scheduled", 1)
    assert 3_500 < (record.checked_in - clock.now) / 1_000_000 <= 3_600


def test_a_job_that_was_stopped_is_not_tried_again(
    redis: Redis, outbox: Outbox, reports: list[JobReport], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Task_, "apply_async", lambda *_, **__: None)
    message = one(outbox)
    execution = Task.objects.get().execution_id

    def work(job: Handle) -> None:
        stop_jobs(execution)
        job.retry(countdown=0)

    with pytest.raises((Ignore, Reject)):
        delivered(message, work)
    deliver_and_publish(reports)
    assert known(redis)["tasks"] == {"a": ("Stopped", 0, 0, "")}
    assert job_records().of(["a"])["a"].status == "Stopped"


NO_DELAY = (1e300, float("inf"), float("nan"), -1, "abc", [5], 366 * 24 * 3600 + 1)
NO_ETA = ("abc", 5, "9999-12-31T23:59:59-10:00", datetime.now(UTC) + timedelta(days=367))


@pytest.mark.parametrize(
    ("said", "why"),
    [
        *(({"countdown": odd}, "countdown takes a number of seconds from 0 to 31,622,400") for odd in NO_DELAY),
        *(({"eta": odd}, "eta takes a moment at most a year from now") for odd in NO_ETA),
        ({"time_limit": "abc"}, "time_limit takes a number of seconds above 0"),
        ({"queue": 5}, "queue takes text of 1 to 255 characters"),
    ],
)
def test_another_try_that_would_never_come_ends_its_job_at_once(
    said: dict[str, Any], why: str, redis: Redis, outbox: Outbox, reports: list[JobReport]
) -> None:
    with pytest.raises(Refused):
        delivered(one(outbox), lambda job: job.retry(**said))
    deliver_and_publish(reports)
    status, revision, runs, message = known(redis)["tasks"]["a"]
    assert (status, revision, runs) == ("Error", 0, 0)
    assert message.startswith(f"Refused: another try of a.job: {why}")
    assert known(redis)["records"] == {}


@pytest.mark.parametrize("delay", ["abc", 1e300])
def test_a_delay_on_the_task_that_would_never_end_ends_its_job_at_once(
    delay: Any, redis: Redis, outbox: Outbox, reports: list[JobReport]
) -> None:
    def fail(job: Handle) -> None:
        raise OSError

    with pytest.raises(Refused):
        delivered(one(outbox), fail, autoretry_for=(OSError,), default_retry_delay=delay)
    assert [report.status for report in reports] == ["Running", "Error"]
    assert reports[1].message.startswith("Refused: another try of a.job: countdown takes a number of seconds")


async def asynchronous() -> None:
    pass


async def asynchronous_in_parts() -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (asynchronous, "a coroutine"),
        (asynchronous_in_parts, "a generator"),
        (lambda: (one for one in "abc"), "a generator"),
    ],
)
def test_a_job_that_leaves_its_work_to_be_run_ends_as_error(
    make: Callable[[], Any], what: str, outbox: Outbox, reports: list[JobReport]
) -> None:
    with pytest.raises(TypeError):
        delivered(one(outbox), lambda job: make())
    assert [report.status for report in reports] == ["Running", "Error"]
    assert reports[1].message.startswith(f"TypeError: it returned {what}, which nothing runs")


def test_a_keyword_of_the_name_self_ends_its_job_and_is_not_lost(outbox: Outbox, reports: list[JobReport]) -> None:
    message = one(outbox)
    app = Celery("a team", set_as_current=False)
    task = app.task(base=TrackedJob, name=message.name, shared=False, lazy=False)(no_arguments)
    task.push_request(id=message.job, called_directly=False, delivery_info={}, **message_header.of(message))
    with pytest.raises(TypeError):
        task(**{"self": 1})
    assert [report.status for report in reports] == ["Running", "Error"]


def test_all_that_a_message_tells_of_its_job_is_looked_at_when_it_is_received(outbox: Outbox) -> None:
    first = message_header.of(one(outbox))[message_header.NAME]
    next_one = message_header.of_another_try(first, 1, 1, 1)[message_header.NAME]
    assert first.keys() | next_one.keys() == message_check.REQUIRED.keys() | message_check.OPTIONAL.keys()


def no_arguments(job: Handle) -> None:
    pass
