"""start: jobs are recorded with the transaction they are started in, and published only when it is committed."""

import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from celery import Celery, chain, chord, group, signature
from django.core.exceptions import ObjectDoesNotExist
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from kombu.utils.json import dumps, loads

from harbor_refresh.executions.errors import NoSuchExecution, Refused
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.models import Execution, Task
from harbor_refresh.tasks.jobs import Handle, TrackedExecution, TrackedJob
from harbor_refresh.tasks.jobs import start as start_signatures
from harbor_refresh.tasks.jobs.lifecycle.job_creation import NewJob, start
from harbor_refresh.tasks.models import Job
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

    told = {"base": TrackedJob, **options}
    return app.task(name=f"with {options}", shared=False, **told)(job_of_its_own)


def soon() -> datetime:
    return datetime.now(UTC) + timedelta(seconds=60)


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


OPERATIONS: dict[str, Callable[[TrackedExecution], Any]] = {
    "progress": lambda one: one.progress(),
    "deep progress": lambda one: one.progress(deep=True),
    "wait": lambda one: one.wait(timeout=0),
    "add": lambda one: one.add([a_job.s()]),
    "close": lambda one: one.close(),
    "results": lambda one: list(one.results()),
    "stop": lambda one: one.stop(),
    "retry_failed": lambda one: one.retry_failed(),
    "resume_stopped": lambda one: one.resume_stopped(),
    "refresh_from_db": lambda one: one.refresh_from_db(),
    "start of a child": lambda one: start_signatures("SCAN", jobs=[a_job.s()], parent=one),
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_after_a_rollback_each_operation_raises_one_error(operation: str, outbox: Outbox) -> None:
    with transaction.atomic():
        execution = start_signatures("SCAN", jobs=[a_job.s()])
        transaction.set_rollback(True)
    with pytest.raises(NoSuchExecution) as raised:
        OPERATIONS[operation](execution)
    assert isinstance(raised.value, ObjectDoesNotExist)


def test_a_start_without_a_type_says_where_the_type_goes() -> None:
    with pytest.raises(Refused, match=r'^write the type first, as in start\("REPLICATION", jobs=.*; got \[a.job'):
        start_signatures([a_job.s()])  # type: ignore[arg-type]


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
        *(object(), float("nan"), float("inf"), {1}, "a\x00b", "half a \ud800 pair", [10**5_000]),
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
    inserts = [len(one["sql"]) for one in queries if "INTO execution_job" in one["sql"]]
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
        (
            chord([a_job.s()], a_job.s()),
            "and no chord: start the jobs of its header, with on_success= for its body",
        ),
        (
            [chord([a_job.s()], a_job.s())],
            "and no chord: start the jobs of its header, with on_success= for its body",
        ),
        ([group([a_job.s(), a_job.s()])], "and no group: write its jobs into the list"),
        ([chain(a_job.si(), group([a_job.si(), a_job.si()]))], "and no group: write its jobs into the list"),
        (a_job.map([1, 2]), "and no map: write one signature for each call"),
        ([a_job.map([1, 2])], "and no map: write one signature for each call"),
        ([a_job.starmap([(1,), (2,)])], "and no starmap: write one signature for each call"),
        ([a_job.chunks([(1,), (2,)], 1)], "and no chunks: write one signature for each call"),
        ([app.signature("no.such.task")], "^no task 'no.such.task' is registered here: import the module"),
        ([signature("no.such.task")], "^no task 'no.such.task' is registered here: import the module"),
        ([no_job.s()], r"^a.task is no tracked job: write @app.task\(base=TrackedJob\)$"),
        ([a_job.s().set(link=a_job.s())], "^a.job: .*; got link; link: a chain runs one job after the other$"),
        (
            [a_job.s().set(link_error=a_job.s())],
            "; got link_error; link_error: on_error= of the execution is called",
        ),
        ([a_job.s().set(headers={"tenant": 7})], r"; got headers; .* as in replicate.s\(1, tenant=7\)"),
        ([a_job.s().set(exchange="x")], "; got exchange; exchange: queue or routing_key says where it waits$"),
        ([a_job.s().set(serializer="pickle", shadow="x")], "; got serializer, shadow$"),
        (
            [a_job.s().set(eta=datetime(2099, 1, 1, tzinfo=UTC))],
            "^a.job: eta takes a moment at most a year",
        ),
        ([a_job.s().set(eta="tomorrow")], "^a.job: eta takes a moment at most a year from now"),
        ([a_job.s().set(eta=soon(), countdown=1)], "^a.job: takes a countdown or an eta, and got both$"),
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
        (asynchronous, "is an `async def`: a job is a plain function; call asyncio.run"),
        (asynchronous_in_parts, "is an `async def`: a job is a plain function"),
        (in_parts, "is a generator: a job is a plain function"),
    ],
)
def test_a_function_that_no_worker_would_run_is_refused_where_it_is_declared(
    function: Any, why: str, options: dict[str, Any]
) -> None:
    another = Celery("another", set_as_current=False)
    with pytest.raises(Refused, match=f"^no.job {why}"):
        another.task(base=TrackedJob, name="no.job", shared=False, lazy=False, **options)(function)
    with pytest.raises(Refused, match=f"^no.job {why}"):
        another.register_task(type("NoJob", (TrackedJob,), {"name": "no.job", "run": staticmethod(function)})())


@pytest.mark.parametrize(
    ("said", "attempts"),
    [
        ({}, 5),
        ({"max_retries": 2}, 5),
        ({"max_retries": 9}, 10),
        ({"max_retries": 10**6}, 32_767),
        ({"retry_kwargs": {"max_retries": 9}}, 10),
        ({"max_retries": 12, "retry_kwargs": {"max_retries": 9}}, 13),
        ({"max_retries": None, "max_attempts": 7}, 7),
        ({"max_retries": 9, "max_attempts": 10}, 10),
        ({"max_retries": 0, "max_attempts": 1}, 1),
        ({"max_attempts": 7}, 7),
        ({"max_attempts": 1}, 1),
    ],
)
def test_a_job_may_begin_as_often_as_its_retries_need_unless_its_task_says_it(
    said: dict[str, Any], attempts: int
) -> None:
    start_signatures("SCAN", jobs=[job_with(**said).s()])
    assert Job.objects.get().max_attempts == attempts


class OftenTriedAgain(TrackedJob):
    abstract = True
    max_retries = 10


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"max_retries": 10, "max_attempts": 5}, "max_retries=10 takes max_attempts=11 or more, and got 5$"),
        ({"max_retries": 3, "max_attempts": 3}, "max_retries=3 takes max_attempts=4 or more, and got 3$"),
        ({"retry_kwargs": {"max_retries": 10}, "max_attempts": 5}, "max_retries=10 takes max_attempts=11 or more"),
        ({"base": OftenTriedAgain, "max_attempts": 5}, "max_retries=10 takes max_attempts=11 or more, and got 5$"),
        ({"max_retries": None}, "max_retries=None sets no limit, .* for ever: set max_attempts as well$"),
    ],
)
def test_retries_that_the_attempts_would_cut_off_are_refused(said: dict[str, Any], why: str) -> None:
    with pytest.raises(Refused, match=why):
        start_signatures("SCAN", jobs=[job_with(**said).s()])
    assert not Execution.objects.exists()


def takes_two(job: Handle, artifact: str, depth: int = 1, *, force: bool = False) -> None:
    pass


def takes_itself_and_two(self: Any, job: Handle, artifact: str, depth: int = 1, *, force: bool = False) -> None:
    pass


TWO = {
    "plain": app.task(base=TrackedJob, name="two", shared=False)(takes_two),
    "tried again": app.task(base=TrackedJob, name="two, again", shared=False, autoretry_for=(OSError,))(takes_two),
    "bound": app.task(base=TrackedJob, name="two, bound", shared=False, bind=True)(takes_itself_and_two),
}


@pytest.mark.parametrize("task", TWO.values(), ids=TWO)
@pytest.mark.parametrize(
    ("args", "kwargs"), [(("a",), {}), (("a", 2), {}), ((), {"artifact": "a"}), (("a",), {"force": True})]
)
def test_arguments_that_the_function_takes_are_started(
    args: tuple[Any, ...], kwargs: dict[str, Any], task: Any, outbox: Outbox
) -> None:
    start_signatures("SCAN", jobs=[task.s(*args, **kwargs)])
    assert [(message.args, message.kwargs) for message in outbox.messages] == [(list(args), kwargs)]


@pytest.mark.parametrize("task", TWO.values(), ids=TWO)
@pytest.mark.parametrize(
    ("args", "kwargs", "why"),
    [
        ((), {}, "missing 1 required positional argument: 'artifact'"),
        (("a", 2, 3), {}, "takes from .* positional arguments but .* were given"),
        (("a",), {"nonsense": 1}, "got an unexpected keyword argument 'nonsense'"),
        (("a",), {"artifact": "b"}, "got multiple values for argument 'artifact'"),
    ],
)
def test_arguments_that_it_does_not_take_are_refused_and_by_delay_too(
    args: tuple[Any, ...], kwargs: dict[str, Any], why: str, task: Any
) -> None:
    with pytest.raises(Refused, match=f"^job {task.name}: .*{why}; the job itself is its first argument"):
        start_signatures("SCAN", jobs=[a_job.s(), task.s(*args, **kwargs)])
    with pytest.raises(TypeError, match=why):
        task.delay(*args, **kwargs)
    assert not Execution.objects.exists()


def test_in_a_chain_the_result_of_the_job_before_is_counted_as_an_argument(outbox: Outbox) -> None:
    task = TWO["plain"]
    start_signatures("SCAN", jobs=[chain(a_job.s(), task.s()), chain(a_job.s(), task.s(2), task.si("a"))])
    for too_few_or_many in (task.si(), task.s(2, 3)):
        with pytest.raises(Refused, match=r"^job two: "):
            start_signatures("SCAN", jobs=[chain(a_job.s(), too_few_or_many)])
    assert Job.objects.count() == 5


@pytest.mark.parametrize(
    "unchecked", [{"typing": False}, {"app": Celery("x", set_as_current=False, strict_typing=False)}]
)
def test_arguments_are_not_checked_if_celery_would_not_check_them(
    unchecked: dict[str, Any], outbox: Outbox
) -> None:
    options = {name: value for name, value in unchecked.items() if name == "typing"}
    task = unchecked.get("app", app).task(base=TrackedJob, name=f"any {unchecked}", shared=False, **options)(
        takes_two
    )
    start_signatures("SCAN", jobs=[task.s(1, 2, 3, 4)])
    assert [message.args for message in outbox.messages] == [[1, 2, 3, 4]]


NATIVE = {
    "uuid": UUID("5b2d0a70-4e4b-4a3f-9d0c-2a3d5f6e7a8b"),
    "moment": datetime(2026, 11, 23, 2, 30, tzinfo=UTC),
    "day": date(2026, 11, 23),
    "time": time(2, 30),
    "sum": Decimal("1.20"),
    "text": b"bytes",
    "more": [b"\xff\x00", {"deep": (Decimal("0.1"),)}],
}


def test_values_that_celerys_json_takes_are_sent_as_celery_sends_them(outbox: Outbox) -> None:
    start("SCAN", [[NewJob("a.job", [*NATIVE.values()], dict(NATIVE), is_unique=True)]])
    (message,) = outbox.messages
    assert json.loads(dumps([message.args, message.kwargs])) == json.loads(dumps([[*NATIVE.values()], NATIVE]))
    read = loads(dumps(message.kwargs))
    assert read == {**NATIVE, "more": [b"\xff\x00", {"deep": [Decimal("0.1")]}]}
    assert [type(read[name]) for name in NATIVE] == [type(value) for value in NATIVE.values()]


@pytest.mark.parametrize(
    ("args", "kwargs", "where"),
    [
        (
            (1, {2}),
            {},
            r"argument 2: Object of type set is not JSON serializable. Give .* dataclasses.asdict\(value",
        ),
        ((), {"items": [a_job]}, "argument 'items': Object of type .* is not JSON serializable"),
    ],
)
def test_a_value_that_celery_does_not_send_is_refused_by_name(args: Any, kwargs: Any, where: str) -> None:
    with pytest.raises(Refused, match=f"^job a.job: takes arguments that are JSON .*; {where}"):
        start("SCAN", [[NewJob("a.job", args, kwargs)]])


ONE_BY_ITSELF = {
    "a signature": (a_job.s(), [1]),
    "a chain": (chain(a_job.si(), a_job.si()), [2]),
    "a group": (group([a_job.s(), a_job.s()]), [1, 1]),
    "a list": ([a_job.s(), chain(a_job.si(), a_job.si())], [1, 2]),
    "an iterator": (iter([a_job.s()]), [1]),
}


@pytest.mark.parametrize("name", ONE_BY_ITSELF)
def test_jobs_by_themselves_or_in_any_iterable_are_started(name: str, outbox: Outbox) -> None:
    jobs, lengths = ONE_BY_ITSELF[name]
    start_signatures("SCAN", jobs=jobs)
    assert Job.objects.filter(follows=None).count() == len(lengths)
    assert Job.objects.count() == sum(lengths)


@pytest.mark.parametrize("told", [{"eta": soon()}, {"eta": soon().isoformat()}, {"countdown": 60}])
def test_a_job_that_is_to_run_later_is_scheduled_and_only_its_first_run_waits(
    told: dict[str, Any], outbox: Outbox
) -> None:
    execution = start_signatures("SCAN", jobs=[a_job.s().set(**told)])
    (message,) = outbox.messages
    as_sent = {name: one.isoformat() if isinstance(one, datetime) else one for name, one in told.items()}
    assert message.options == as_sent
    assert Task.objects.get().status == "Scheduled"
    execution.stop()
    execution.resume_stopped()
    assert outbox.messages[-1].options == {}


@pytest.mark.parametrize("told", [{"eta": None}, {"countdown": None}, {"eta": "2020-01-01T00:00:00"}])
def test_a_moment_of_the_past_is_taken_as_celery_takes_it(told: dict[str, Any], outbox: Outbox) -> None:
    start_signatures("SCAN", jobs=[a_job.s().set(**told)])
    (message,) = outbox.messages
    assert message.options == {name: value for name, value in told.items() if value}


def test_the_id_that_celery_sets_in_a_chain_is_not_the_id_of_the_job(outbox: Outbox) -> None:
    start_signatures("SCAN", jobs=[a_job.s().set(task_id="mine")])
    assert [(message.job == "mine", message.options) for message in outbox.messages] == [(False, {})]


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({"trigger": "t" * 17}, "^trigger takes at most 16 characters, and got 'tttt"),
        ({"trigger": 5}, "^trigger takes at most 16 characters, and got 5$"),
        (
            {"vendor_id": "x" * 256},
            "^vendor_id takes a whole number of at most 64 bits, a UUID, or text of 1 to 255",
        ),
        ({"vendor_id": NATIVE["moment"]}, "^vendor_id takes .* and got datetime"),
    ],
)
def test_what_the_execution_does_not_take_is_refused_by_name(told: dict[str, Any], why: str) -> None:
    with pytest.raises(Refused, match=why):
        start_signatures("SCAN", jobs=[a_job.s()], **told)
    assert not Execution.objects.exists()


def test_an_execution_is_for_an_object_whose_key_is_a_number_a_uuid_or_text() -> None:
    uuid = NATIVE["uuid"]
    keys = [
        (execution.vendor_key, TrackedExecution.objects.get(pk=execution.pk).vendor_key)
        for execution in (start_signatures("SCAN", jobs=[a_job.s()], vendor_id=one) for one in (uuid, "disk/a", 7))
    ]
    assert keys == [(str(uuid), str(uuid)), ("disk/a", "disk/a"), ("7", "7")]


def test_a_stop_ends_an_execution_as_error_if_a_job_had_failed_and_leaves_one_that_had_ended() -> None:
    statuses = {}
    for before in ("Error", "Success", "Stopped"):
        execution = start_signatures("SCAN", jobs=[a_job.s(), a_job.s()])
        first, second = execution.tasks.order_by("pk")
        report([Report(first.pk, before, 0)])
        execution.stop()
        statuses[before] = execution.status
    assert statuses == {"Error": "Error", "Success": "Stopped", "Stopped": "Stopped"}
    report(Report(pk, "Success", 1) for pk in (first.pk, second.pk))
    refresh([execution.pk])
    execution.stop()
    assert execution.status == "Success"
