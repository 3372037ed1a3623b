"""A run in the process of a worker: what a job gets, returns, raises and asks for, and what its row says then."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from celery.exceptions import Ignore, MaxRetriesExceededError, Reject, Retry, SoftTimeLimitExceeded
from django.db import DataError, transaction
from django.db.models import RestrictedError

from harbor_refresh.executions.errors import Refused
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.models import Execution, Task
from harbor_refresh.executions.status import Status
from harbor_refresh.tasks.jobs import Handle
from harbor_refresh.tasks.jobs.again import resume_stopped, retry_failed
from harbor_refresh.tasks.jobs.live_workers import this_worker
from harbor_refresh.tasks.jobs.outcomes import Outcome, take
from harbor_refresh.tasks.jobs.running import tracked
from harbor_refresh.tasks.jobs.running.handle import Begun
from harbor_refresh.tasks.jobs.starting.declarations import NewJob
from harbor_refresh.tasks.models import Job
from harbor_refresh.tasks.models.job import JobInput
from tests.integration.jobs.sample_jobs import (
    AtOnce,
    Outbox,
    Sent,
    begun,
    chained,
    database_port,
    delivered,
    delivered_to,
    in_a_row,
    job,
    named,
    recorded,
    rows,
    tasks,
    tasks_refuse,
    tasks_refuse_no_more,
)
from tests.started import start

pytestmark = pytest.mark.usefixtures("database", "at_once", "worker")

TYPED = [
    UUID("5b2d0a70-4e4b-4a3f-9d0c-2a3d5f6e7a8b"),
    Decimal("1.20"),
    datetime(2026, 11, 23, tzinfo=UTC),
    b"\xff",
]


def one(outbox: Outbox, name: str = "a", **options: Any) -> Sent:
    """The message of a new job."""
    recorded(name, **options)
    (message,) = outbox.take()
    return message


def chain_of_two(outbox: Outbox) -> Sent:
    start("SCAN", [in_a_row(NewJob("a.job", job_id="a"), NewJob("b.job", job_id="b"))])
    (message,) = outbox.take()
    return message


def got(message: Sent, work: Callable[..., Any] = lambda *_: None) -> list[Any]:
    """What the job of this message gets, besides its handle."""
    seen: list[Any] = []

    def carry_out(job: Handle, *args: Any) -> Any:
        seen.extend(args)
        return work(job, *args)

    delivered_to(carry_out, message)
    return seen


Work = Callable[[Handle], Any]


def again(message: Sent, work: Callable[[Handle], Any], **options: Any) -> None:
    """The job asks for another try."""
    with pytest.raises(Retry):
        delivered(message, work, **options)


# what it returns and raises


def test_a_job_that_returns_has_ended_and_its_task_has_succeeded(outbox: Outbox, at_once: AtOnce) -> None:
    assert delivered(one(outbox), lambda job: 7) == 7
    assert rows() == {"a": ("ended", 1)}
    assert tasks() == {"a": ("Success", 0, 0, "")}
    assert at_once.current == {}


def test_a_job_runs_as_well_if_a_tracer_has_put_headers_into_its_message(outbox: Outbox) -> None:
    def carry_out(job: Handle) -> str:
        return type(job).__name__

    assert delivered_to(carry_out, one(outbox), headers={"x-trace-id": "1"}) == "Handle"
    assert rows() == {"a": ("ended", 1)}


def test_a_message_that_begins_no_run_is_ignored(outbox: Outbox) -> None:
    message = one(outbox)
    delivered(message, lambda job: None)
    with pytest.raises(Ignore):
        delivered(message, lambda job: pytest.fail("it runs twice"))


def test_a_job_that_has_expired_before_it_begins_is_stopped_and_a_resumed_one_runs(outbox: Outbox) -> None:
    past = (datetime.now(UTC) - timedelta(seconds=1)).isoformat()
    message = one(outbox, options={"expires": past})
    with pytest.raises(Ignore):
        delivered(message, lambda job: pytest.fail("it has expired"))
    assert tasks() == {"a": ("Stopped", 0, 0, "it expired before it began")}
    assert resume_stopped(Task.objects.get().execution_id) == 1
    delivered(outbox.take()[0], lambda job: None)
    assert tasks()["a"][0] == "Success"


@pytest.mark.parametrize("arguments", [[], ()])
def test_other_hooks_of_celery_see_the_arguments_of_the_row_whatever_the_serializer_makes_of_them(
    arguments: Any, outbox: Outbox
) -> None:
    message = one(outbox, args=[7])
    seen: list[Any] = []

    def carry_out(job: Handle, number: int) -> None:
        seen.append(job._task.request.args)

    delivered_to(carry_out, message, arguments)
    assert seen == [[7]]


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    "raised",
    [
        *map(ValueError, ["a\x00b", "half a \ud800 pair", "x" * 5_000, "", "a|b|c\nd"]),
        *(Unspeakable(), asyncio.CancelledError(), GeneratorExit(), Ignore(), Reject()),
    ],
)
def test_whatever_leaves_a_job_ends_it(raised: BaseException, outbox: Outbox) -> None:
    def leave(job: Handle) -> None:
        raise raised

    with pytest.raises(type(raised)):
        delivered(one(outbox), leave)
    status, _, _, said = tasks()["a"]
    assert status == "Error"
    assert said.startswith(type(raised).__name__)
    assert not said.endswith(": ")


@pytest.mark.parametrize("result", [float("nan"), float("inf"), "a\x00b", "half a \ud800 pair", {1: 2}, object()])
def test_whatever_a_job_of_a_chain_returns_its_task_ends(result: Any, outbox: Outbox) -> None:
    delivered(chain_of_two(outbox), lambda job: result)
    ended = tasks()["a"][0]
    assert ended in ("Success", "Error")
    assert tasks()["b"][0] == ("Pending" if ended == "Success" else "Stopped")
    assert len(outbox.take()) == (ended == "Success")


@pytest.mark.parametrize("result", [None, "", "a \\u0000 b", "ä|\n", [1, {"deep": [True, None]}], 10**30, TYPED])
def test_the_job_after_it_gets_what_it_returned(result: Any, outbox: Outbox) -> None:
    delivered(chain_of_two(outbox), lambda job: result)
    (following,) = outbox.take()
    assert got(following) == [result]


@pytest.mark.parametrize(
    ("args", "kwargs"), [([{"__type__": "of another app", "__value__": 1}], {}), ([], {"self": 1})]
)
def test_arguments_that_its_process_cannot_read_end_a_job(args: Any, kwargs: Any, outbox: Outbox) -> None:
    with pytest.raises((TypeError, ValueError)):
        delivered(one(outbox, args=args, kwargs=kwargs), lambda job: None)
    assert tasks()["a"][0] == "Error"


@pytest.mark.parametrize(
    ("make", "what"),
    [(lambda: asyncio.sleep(0), "a coroutine"), (lambda: (one for one in "abc"), "a generator")],
)
def test_a_job_that_leaves_its_work_to_be_run_ends_as_error(
    make: Callable[[], Any], what: str, outbox: Outbox
) -> None:
    with pytest.raises(TypeError):
        delivered(one(outbox), lambda job: make())
    status, _, _, said = tasks()["a"]
    assert status == "Error"
    assert said.startswith(f"TypeError: it returned {what}, which nothing runs")


def test_a_job_that_calls_itself_like_a_function_is_not_begun_again(outbox: Outbox) -> None:
    def count(job: Handle, left: int = 3) -> int:
        return 0 if not left else 1 + job._task(left - 1)

    assert delivered_to(count, one(outbox)) == 3
    assert rows() == {"a": ("ended", 1)}


def test_a_job_that_returns_after_it_was_told_to_stop_has_stopped(outbox: Outbox) -> None:
    """The run was given to another node, say, and that one is gone as well."""

    def work(job: Handle) -> None:
        job.is_lost = True
        assert job.should_stop()

    delivered(one(outbox), work)
    assert tasks() == {"a": ("Stopped", 0, 0, "it was asked to stop, and did")}


# another try


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
    given: dict[str, Any], then: Any, outbox: Outbox
) -> None:
    """As in Celery, which does not count the handle."""

    def replicate(job: Handle, artifact: str, depth: int = 0) -> None:
        job.retry(**given, countdown=0)

    with pytest.raises(Retry):
        delivered_to(replicate, one(outbox, args=["a"], kwargs={"depth": 1}))
    assert (job("a").args, job("a").kwargs) == then
    assert rows() == {"a": ("sent", 1)}


@pytest.mark.parametrize(
    "later", [lambda: {"countdown": 3600}, lambda: {"eta": datetime.now(UTC) + timedelta(hours=1)}]
)
def test_another_try_waits_until_its_moment_and_is_told_as_scheduled_with_its_reason_in_a_new_revision(
    later: Callable[[], dict[str, Any]], outbox: Outbox
) -> None:
    again(one(outbox), lambda job: job.retry(exc=OSError("no route"), **later()))
    moment = job("a").not_before
    assert moment is not None
    assert 3_500 < (moment - datetime.now(UTC)).total_seconds() <= 3_600
    assert (rows(), outbox.take()) == ({"a": ("waiting", 1)}, [])
    assert tasks() == {"a": ("Scheduled", 1, 1, "OSError: no route")}


@pytest.mark.parametrize("past", [{"countdown": -0.3}, {"eta": datetime(2026, 1, 1, tzinfo=UTC)}])
def test_another_try_whose_moment_has_passed_comes_at_once(past: dict[str, Any], outbox: Outbox) -> None:
    again(one(outbox), lambda job: job.retry(**past))
    assert (rows(), outbox.taken()) == ({"a": ("sent", 1)}, [("a", 1)])


def test_tries_are_counted_over_all_messages_as_celery_counts_them(outbox: Outbox) -> None:
    def fail(job: Handle) -> None:
        raise OSError("no route")

    policy: dict[str, Any] = {"autoretry_for": (OSError,), "max_retries": 2, "default_retry_delay": 0}
    message = one(outbox, max_attempts=5)
    for _ in range(2):
        again(message, fail, **policy)
        (message,) = outbox.take()
    with pytest.raises(OSError):
        delivered(message, fail, **policy)
    assert tasks() == {"a": ("Error", 2, 2, "OSError: no route")}
    assert rows() == {"a": ("ended", 3)}


def test_max_retries_of_a_call_ends_the_job_as_error(outbox: Outbox) -> None:
    with pytest.raises(MaxRetriesExceededError):
        delivered(one(outbox), lambda job: job.retry(max_retries=0))
    assert tasks()["a"][0] == "Error"


def test_a_job_that_has_begun_as_often_as_it_may_gets_no_other_try(outbox: Outbox) -> None:
    again(one(outbox, max_attempts=1), lambda job: job.retry(exc=OSError("no route"), countdown=0))
    why = "it has begun once, which is as often as it may: see max_attempts; at last: OSError: no route"
    assert tasks() == {"a": ("Error", 0, 0, why)}
    assert outbox.take() == []


def test_a_job_that_returns_after_it_has_asked_for_another_try_gets_that(outbox: Outbox) -> None:
    def work(job: Handle) -> int:
        job._task.retry(countdown=0, throw=False)
        return 7

    delivered(one(outbox), work)
    assert rows() == {"a": ("sent", 1)}
    delivered(*outbox.take(), lambda job: 8)
    assert tasks()["a"][0] == "Success"


def test_of_two_outcomes_of_a_run_that_are_taken_together_the_first_stands(outbox: Outbox) -> None:
    run = begun(one(outbox), node=this_worker.id)
    assert run
    again, end = Outcome(run.run, Status.SCHEDULED, delay=60), Outcome(run.run, Status.SUCCESS)
    assert [outcome.status for outcome in take([again, end])] == ["Scheduled"]
    assert (rows(), tasks()["a"][0]) == ({"a": ("waiting", 1)}, "Scheduled")


NO_DELAY = (float("nan"), "abc", 366 * 24 * 3600 + 1)
NO_ETA = ("abc", datetime.now(UTC) + timedelta(days=367))
COUNTDOWN = "countdown takes a number of seconds from 0 to 31,622,400"


@pytest.mark.parametrize(
    ("said", "why"),
    [
        *(({"countdown": odd}, COUNTDOWN) for odd in NO_DELAY),
        ({"default_retry_delay": "abc"}, COUNTDOWN),
        *(({"eta": odd}, "eta takes a moment at most a year from now") for odd in NO_ETA),
        ({"queue": "large"}, "takes args, kwargs, exc, countdown, eta and max_retries; got queue"),
    ],
)
def test_another_try_that_would_never_come_ends_its_job_at_once(
    said: dict[str, Any], why: str, outbox: Outbox
) -> None:
    def work(job: Handle) -> None:
        job.retry(**({} if of_the_task else said))

    of_the_task = said if "default_retry_delay" in said else {}
    with pytest.raises(Refused):
        delivered(one(outbox), work, **of_the_task)
    status, revision, runs, message = tasks()["a"]
    assert (status, revision, runs) == ("Error", 0, 0)
    assert message.startswith(f"Refused: another try of a.job: {why}")


# the arguments that it asks for: they are in its row, and every later run has them, whatever dies


def asks_for(*args: Any, **options: Any) -> Work:
    return lambda job: job.retry(args=args, countdown=0, **options)


def tries_again(job: Handle) -> None:
    job.retry(countdown=0)


def ends_well(job: Handle) -> None:
    pass


def seen_by(work: Work, outbox: Outbox) -> list[Any]:
    """Run the job of the one message. Return the arguments that it got."""
    seen: list[Any] = []

    def carry_out(job: Handle, *args: Any, **kwargs: Any) -> None:
        seen.extend((*args, *kwargs.items()))
        work(job)

    (message,) = outbox.take()
    with suppress(Retry):
        delivered_to(carry_out, message, max_retries=99)
    return seen


def test_every_later_run_has_the_arguments_of_another_try_until_the_job_asks_for_others(outbox: Outbox) -> None:
    recorded("j", args=[1], kwargs={"size": 10}, max_attempts=9)
    works: list[Work] = [
        tries_again,
        asks_for(TYPED),
        tries_again,
        asks_for(3, kwargs={}),
        asks_for(kwargs={"size": 5}),
        ends_well,
    ]
    assert [seen_by(work, outbox) for work in works] == [
        [1, ("size", 10)],
        [1, ("size", 10)],
        [TYPED, ("size", 10)],
        [TYPED, ("size", 10)],
        [3],
        [("size", 5)],
    ]


def test_the_result_of_the_job_before_is_one_of_the_arguments_of_another_try(outbox: Outbox) -> None:
    chained("a", "b")
    (first,) = outbox.take()
    delivered(first, lambda job: 7)
    works: list[Work] = [tries_again, asks_for(8, "c"), tries_again, ends_well]
    assert [seen_by(work, outbox) for work in works] == [[7, "b"], [7, "b"], [8, "c"], [8, "c"]]


@pytest.mark.parametrize("argument", [object(), float("nan"), "x" * 2_000_000])
def test_arguments_of_another_try_that_cannot_be_kept_end_the_job(argument: Any, outbox: Outbox) -> None:
    recorded("j", args=[1])
    with pytest.raises(Reject, match="another try takes arguments that are JSON"):
        seen_by(asks_for(argument), outbox)
    assert rows() == {"j": ("ended", 1)}
    assert "another try takes arguments that are JSON" in tasks()["j"][3]


# what goes wrong at its beginning


def test_a_message_that_comes_while_the_database_is_down_goes_back_and_begins_later(outbox: Outbox) -> None:
    message = one(outbox)
    with database_port() as port:
        port.down()
        with pytest.raises(Reject) as rejected:
            delivered(message, lambda job: None)
        assert rejected.value.requeue
        port.back()
    assert delivered(message, lambda job: 7) == 7


@pytest.mark.parametrize("sqlstate", ["54000", "22012", "P0001", "XX000"])
def test_a_job_that_the_database_refuses_to_begin_ends_and_says_why(sqlstate: str, outbox: Outbox) -> None:
    """As it does if what the job takes of others does not fit into one value."""
    message = chain_of_two(outbox)
    tasks_refuse("NEW.state = 'running'", sqlstate, table="execution_job")
    with pytest.raises(Ignore):
        delivered(message, lambda job: pytest.fail("it has not begun"))
    assert rows() == {"a": ("ended", 0), "b": ("ended", 0)}
    status, _, run_count, said = tasks()["a"]
    assert (status, run_count, said) == ("Error", 0, "it cannot begin: no more")
    assert tasks()["b"][0] == "Stopped"


@pytest.mark.parametrize("sqlstate", ["55P03", "40P01", "57014", "0A000", "42883"])
def test_a_begin_that_another_transaction_or_a_migration_prevents_gives_its_message_back(
    sqlstate: str, outbox: Outbox
) -> None:
    message = one(outbox)
    tasks_refuse("NEW.state = 'running'", sqlstate, table="execution_job")
    with pytest.raises(Reject) as rejected:
        delivered(message, lambda job: None)
    assert rejected.value.requeue
    tasks_refuse_no_more()
    assert delivered(message, lambda job: 7) == 7


@pytest.mark.parametrize(
    ("raised", "goes_down"),
    [(SoftTimeLimitExceeded(), False), (DataError("too large"), True)],
    ids=["time limit", "refused by a database that goes down then"],
)
def test_a_begin_that_fails_and_whose_job_cannot_be_ended_gives_its_message_back(
    raised: Exception, goes_down: bool, outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = one(outbox)
    with database_port() as port:

        def fail(*_: Any) -> Any:
            if goes_down:
                port.down()
            raise raised

        monkeypatch.setattr(tracked, "begin", fail)
        with pytest.raises(Reject) as rejected:
            delivered(message, lambda job: None)
        assert rejected.value.requeue
    assert rows() == {"a": ("sent", 0)}


# chains, when another program reports the end of the job before


LOST = ("Error", "the result of task a, which it takes, was lost")
WAITS = ("Pending", "")


def broken(by: str = "a", status: str = "Error") -> tuple[str, str]:
    """The end of a job that needs that one, which has ended so."""
    return "Stopped", f"it needs a.job (task {by}), which has ended as {status}"


def said() -> dict[str, tuple[str, str]]:
    return {name: (status, named(message)) for name, (status, _, _, message) in tasks().items()}


def reported(name: str, status: str, revision: int = 0) -> None:
    """Another program reports this status of the job."""
    report([Report(Task.objects.get(job_id=name).pk, status, revision)])


def running(outbox: Outbox) -> Begun:
    """The first job of the chain."""
    run = begun(outbox.take()[0], node=this_worker.id)
    assert run
    return run


def test_a_success_that_another_program_reports_is_followed_by_a_job_that_takes_no_result(outbox: Outbox) -> None:
    chained("a", "b", takes=JobInput.NOTHING)
    outbox.take()
    reported("a", "Success")
    assert Job.objects.get(task__job_id="b").waits_for == 0, "its turn has come"


@pytest.mark.parametrize("runs", [False, True])
def test_a_job_whose_argument_was_lost_fails_and_ends_its_chain_for_good(runs: bool, outbox: Outbox) -> None:
    """Another program has reported the success of the job before it, which has left no result."""
    execution = chained("a", "b", "c")
    run = running(outbox) if runs else None
    reported("a", "Success")
    assert said() == {"a": ("Success", ""), "b": LOST, "c": broken("b")}
    assert run is None or take([Outcome(run.run, Status.SUCCESS, result="7")]) == []
    assert retry_failed(execution.pk) == 0, "it never runs without its argument"
    assert outbox.take() == [] or not runs


def test_a_job_that_has_had_its_turn_is_not_ended_for_a_later_run_of_the_job_before_it(outbox: Outbox) -> None:
    chained("a", "b", "c")
    got(*outbox.take(), lambda *_: 7)
    reported("a", "Error", 1)
    assert said() == {"a": ("Error", ""), "b": WAITS, "c": WAITS}
    assert got(*outbox.take()) == [7, "b"]


def test_a_task_that_another_job_follows_is_deleted_only_with_it(outbox: Outbox) -> None:
    execution: Execution = chained("a", "b")
    with pytest.raises(RestrictedError), transaction.atomic():
        Task.objects.get(job_id="a").delete()
    assert (Task.objects.count(), Job.objects.count()) == (2, 2)
    execution.delete()
    assert (Task.objects.count(), Job.objects.count()) == (0, 0)
