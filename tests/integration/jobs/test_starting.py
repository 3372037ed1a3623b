"""start: jobs are recorded in the transaction that starts them, all or none, and sent after its commit. What
cannot be stored, sent or run is refused, and the error says what to write."""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import wraps
from typing import Any
from uuid import UUID

import pytest
from celery import Celery, chain, current_app, group, signature
from django.core.exceptions import ObjectDoesNotExist
from django.db import connection, router, transaction
from django.test.utils import CaptureQueriesContext

from harbor_refresh.executions.errors import (
    AlreadyUnderWay,
    NoSuchExecution,
    NotCommitted,
    NotMigrated,
    Refused,
    StillRunning,
)
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.models import Addition, Execution, Task
from harbor_refresh.executions.text import MAX_JSON
from harbor_refresh.tasks.jobs import Handle, TrackedExecution, TrackedJob
from harbor_refresh.tasks.jobs import start as start_signatures
from harbor_refresh.tasks.jobs.live_workers import this_worker
from harbor_refresh.tasks.jobs.starting import job_rows
from harbor_refresh.tasks.jobs.starting.declarations import NewJob, Part
from harbor_refresh.tasks.jobs.starting.job_rows import add
from harbor_refresh.tasks.models import Job
from tests.integration.concurrency import at_once
from tests.integration.jobs.report_receiver import Target
from tests.integration.jobs.sample_jobs import Outbox, beats, delivered_to, in_a_row, recorded, rows, tasks
from tests.started import start
from tests.waiting import wait_for

app = Celery("a team", set_as_current=False)

pytestmark = pytest.mark.usefixtures("database", "outbox")


@app.task(base=TrackedJob, name="a.job", shared=False)
def a_job(job: Handle) -> None:
    pass


@app.task(name="a.task", shared=False)
def no_job() -> None:
    pass


def job_with(**options: Any) -> Any:
    """Another job of the team, with these options of its task."""

    def job_of_its_own(job: Handle) -> None:
        pass

    options = {"base": TrackedJob, **options}
    return app.task(name=f"with {options}", shared=False, **options)(job_of_its_own)


def soon() -> datetime:
    return datetime.now(UTC) + timedelta(seconds=60)


def test_messages_are_sent_after_the_commit_and_not_before(outbox: Outbox) -> None:
    with transaction.atomic():
        recorded("a", "b")
        assert (outbox.taken(), rows()) == ([], dict.fromkeys("ab", ("waiting", 0)))
    assert (outbox.taken(), rows()) == ([("a", 0), ("b", 0)], dict.fromkeys("ab", ("sent", 0)))
    assert tasks() == dict.fromkeys("ab", ("Pending", 0, 0, ""))


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


def test_a_rollback_leaves_nothing_and_sends_nothing_and_then_each_operation_raises_one_error(
    outbox: Outbox,
) -> None:
    with transaction.atomic():
        execution = start_signatures("SCAN", jobs=[a_job.s()])
        transaction.set_rollback(True)
    assert (outbox.take(), rows(), Execution.objects.count()) == ([], {}, 0)
    for operation in OPERATIONS.values():
        with pytest.raises(NoSuchExecution) as raised:
            operation(execution)
        assert isinstance(raised.value, ObjectDoesNotExist)


def test_of_a_unique_job_that_many_start_at_once_one_is_recorded(outbox: Outbox) -> None:
    def start_it() -> None:
        start("SCAN", [in_a_row(NewJob("a.job", ["same"], is_unique=True), NewJob("after")), [NewJob("other")]])

    at_once(*[start_it] * 8)
    assert Counter(Job.objects.values_list("name", flat=True)) == {"a.job": 1, "after": 1, "other": 8}
    assert len(outbox.take()) == 9


ANOTHER_TYPE = r"argument 2: Object of type set is not JSON serializable. Give .* dataclasses.asdict\(value"
UNIQUE = NewJob("a.job", ["x"], is_unique=True)
REFUSED_JOBS: list[tuple[str, list[Any]]] = [
    *(
        ("^job bad: takes arguments that are JSON", [NewJob("bad", [odd])])
        for odd in (object(), float("nan"), "a\x00b", ["x" * MAX_JSON])
    ),
    (f"^job a.job: takes arguments that are JSON .*; {ANOTHER_TYPE}", [NewJob("a.job", (1, {2}))]),
    ("; argument 'items': Object of type .* is not", [NewJob("a.job", kwargs={"items": [a_job]})]),
    ("takes the result of the job before it", in_a_row(NewJob("a.job"), NewJob("b", is_unique=True))),
    ("the same unique job twice", [UNIQUE, UNIQUE]),
]


def test_a_job_that_cannot_be_stored_is_refused_and_nothing_is_written() -> None:
    for why, steps in REFUSED_JOBS:
        with pytest.raises(Refused, match=why):
            start("SCAN", [[NewJob("good")], steps])
    assert not Execution.objects.exists()


NO_SECONDS = (0, -5, "5", [5], True, 366 * 24 * 3600 + 1, float("nan"), float("inf"), 10**400)
NO_OPTIONS: dict[tuple[str, str], tuple[Any, ...]] = {
    ("time_limit", "a number of seconds above 0 and at most 31,622,400"): NO_SECONDS,
    ("soft_time_limit", "a number of seconds above 0"): NO_SECONDS,
    ("countdown", "a number of seconds from 0 to 31,622,400"): NO_SECONDS[1:],
    ("expires", "a number of seconds above 0 .*, or a moment"): NO_SECONDS,
    ("expires", ".* or a moment"): ("", "soon", {"a": 1}, "9999-12-31T23:59:59-10:00"),
    ("eta", "a moment at most a year from now"): ("tomorrow", datetime(2099, 1, 1, tzinfo=UTC)),
    ("priority", "a whole number from 0 to 9"): (-1, 10, "1", 1.5, [1], True),
    ("queue", "text of 1 to 255 characters"): ("", "q" * 256, 5, {"a": 1}, "q\x00"),
    ("routing_key", "text of 1 to 255 characters"): ("", 5, [1]),
}
REFUSED: list[tuple[str, Any]] = [
    ("and got None$", None),
    ("and got 5$", 5),
    ("and got 'a' among them$", "abc"),
    ("among them$", [a_job]),
    ("and got None among them$", [None]),
    ("^celery.map: write a job for each item", a_job.map([1, 2])),
    *(("^no task 'no' is registered here: import the", [odd("no")]) for odd in (app.signature, signature)),
    ("a job takes a name of at most 255 characters$", [job_with(note="n" * 256).s()]),
    (r"^a.task is no tracked job: write @app.task\(base=TrackedJob\) and def it\(job, ...\)$", [no_job.s()]),
    ("^a.job: .*; got link; link: a chain runs one job after the other$", [a_job.s().set(link=a_job.s())]),
    ("; got link_error; link_error: on_error= of the execution is", [a_job.s().set(link_error=a_job.s())]),
    (r"; got headers; .* as in replicate.s\(1, tenant=7\)", [a_job.s().set(headers={"tenant": 7})]),
    ("; got exchange; exchange: queue or routing_key says where it waits$", [a_job.s().set(exchange="x")]),
    ("; got serializer, shadow$", [a_job.s().set(serializer="pickle", shadow="x")]),
    (
        "on each of its jobs; got queue on all",
        [chain(a_job.si(), a_job.si()).set(queue="slow")],
    ),
    ("on each of its jobs; got queue on all", group([a_job.si()]).set(queue="slow")),
    *(
        (f"^a.job: {name} takes {takes}.*, and got ", [a_job.s(), a_job.s().set(**{name: odd})])
        for (name, takes), several in NO_OPTIONS.items()
        for odd in several
    ),
    *(
        (f"{name} takes .*, and got 'abc'$", [job_with(**{name: "abc"}).s()])
        for name in ("time_limit", "soft_time_limit", "expires")
    ),
    *(("max_attempts takes .* to 32,767", [job_with(max_attempts=odd).s()]) for odd in (0, 40_000, "5", None)),
]


def test_jobs_that_cannot_be_sent_or_run_are_refused_with_a_hint_and_nothing_is_written() -> None:
    for why, jobs in REFUSED:
        with pytest.raises(Refused, match=why):
            start_signatures("SCAN", jobs=jobs)
    with pytest.raises(
        Refused, match=r'^write the type first, as in start."REPLICATION", jobs=.*, and got .a.job'
    ):
        start_signatures([a_job.s()])  # type: ignore[arg-type]
    for callbacks in ([None], [5]):
        with pytest.raises(Refused, match=r"^on_error takes the signature of a plain Celery task"):
            start_signatures("SCAN", jobs=[a_job.s()], on_error=callbacks)  # type: ignore[arg-type]
    assert not Execution.objects.exists()


def test_options_are_kept_as_json_and_sent_with_the_message(outbox: Outbox) -> None:
    options = {"queue": "slow", "priority": 0, "time_limit": 2, "soft_time_limit": 1.5}
    moment = datetime(2099, 1, 1, tzinfo=UTC)
    start_signatures("SCAN", jobs=[a_job.s().set(**options, expires=moment, countdown=None, routing_key=None)])
    sent = options | {"routing_key": None}
    assert [message.options for message in outbox.messages] == [sent]
    job = Job.objects.get()
    assert job.options == sent | {"expires": "2099-01-01T00:00:00+00:00"}
    assert (job.queue, Task.objects.get().status) == ("slow", "Pending")


def test_a_sender_need_not_know_the_task_to_send_what_the_task_says_of_its_messages(
    outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = {"queue": "slow", "delivery_mode": 1, "exchange": "x", "routing_key": "r", "priority": 3}
    for name, value in said.items():
        monkeypatch.setattr(a_job, name, value, raising=False)
    monkeypatch.setitem(current_app.tasks, a_job.name, a_job)
    start_signatures("SCAN", jobs=[a_job.s()])
    assert [one.options | {"queue": one.queue} for one in outbox.messages] == [said]


def test_a_route_of_the_project_asks_the_task_where_its_jobs_go(monkeypatch: pytest.MonkeyPatch) -> None:
    def by_lane(*_: Any, task: Any = None, **__: Any) -> dict[str, str]:
        return {"queue": task.lane}

    monkeypatch.setattr(a_job, "lane", "fast", raising=False)
    monkeypatch.setitem(current_app.tasks, a_job.name, a_job)
    monkeypatch.setattr(current_app.amqp.router, "routes", [by_lane])
    start_signatures("SCAN", jobs=[a_job.s()])
    assert Job.objects.get().queue == "fast"


def test_the_moment_at_which_the_jobs_of_a_task_expire_counts_as_one_of_the_call(
    outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(a_job, "expires", datetime(2099, 1, 1, tzinfo=UTC))
    monkeypatch.setitem(current_app.tasks, a_job.name, a_job)
    start_signatures("SCAN", jobs=[a_job.s()])
    assert Job.objects.get().options["expires"] == "2099-01-01T00:00:00+00:00"


def test_a_job_expires_so_many_seconds_after_its_start_however_long_it_waits_to_be_sent(outbox: Outbox) -> None:
    before = datetime.now(UTC)
    start_signatures("SCAN", jobs=[a_job.s().set(expires=60)])
    expires = datetime.fromisoformat(Job.objects.get().options["expires"])
    assert timedelta(seconds=60) <= expires - before < timedelta(seconds=120)


async def asynchronous_in_parts(job: Handle) -> AsyncIterator[int]:
    yield 1


def in_parts(job: Handle) -> Iterator[int]:
    yield 1


@pytest.mark.parametrize("function", [asynchronous_in_parts, in_parts])
def test_a_function_that_no_worker_would_run_is_refused_where_it_is_declared(function: Any) -> None:
    another = Celery("another", set_as_current=False)
    with pytest.raises(Refused, match=r"^no\.job is a generator: a job is no generator"):
        another.task(base=TrackedJob, name="no.job", shared=False, lazy=False)(function)


def keeps_days(days: int = 30) -> None:
    pass


def keeps_days_itself(self: Any, days: int = 30) -> None:
    pass


@wraps(keeps_days)
def drops_the_handle(job: Handle, *args: Any) -> None:
    keeps_days(*args)


def does_without_a_handle(job: Handle | None = None, days: int = 30) -> None:
    pass


def test_a_function_whose_default_the_handle_would_replace_is_refused_where_it_is_declared() -> None:
    options: dict[str, Any] = {"base": TrackedJob, "name": "no.job", "shared": False, "lazy": False}
    for function, bind in ((keeps_days, False), (keeps_days_itself, True)):
        with pytest.raises(Refused, match=r"^no\.job: `days` has a default, and would get the handle: begin with"):
            Celery("another", set_as_current=False).task(bind=bind, **options)(function)
    for function in (drops_the_handle, does_without_a_handle):
        Celery("another", set_as_current=False).task(**options)(function)


ATTEMPTS: list[tuple[int, dict[str, Any]]] = [
    (5, {"max_retries": 2}),
    (32_767, {"max_retries": 10**6}),
    (10, {"retry_kwargs": {"max_retries": 9}}),
    (13, {"max_retries": 12, "retry_kwargs": {"max_retries": 9}}),
    (7, {"max_retries": None, "max_attempts": 7}),
    (5, {"max_retries": 10, "max_attempts": 5}),
    (1, {"max_attempts": 1}),
]


def test_a_job_may_begin_as_often_as_its_retries_need_unless_its_task_says_how_often() -> None:
    start_signatures("SCAN", jobs=[job_with(**options).s() for _, options in ATTEMPTS])
    assert list(Job.objects.order_by("pk").values_list("max_attempts", flat=True)) == [
        most for most, _ in ATTEMPTS
    ]


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
def test_arguments_are_checked_against_the_function_and_by_delay_too(task: Any) -> None:
    good: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        *((("a",), {}), (("a", 2), {}), ((), {"artifact": "a"}), (("a",), {"force": True}))
    ]
    start_signatures("SCAN", jobs=[task.s(*args, **kwargs) for args, kwargs in good])
    kept = Job.objects.order_by("pk").values_list("args", "kwargs")
    assert list(kept) == [(list(args), kwargs) for args, kwargs in good]
    bad: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
        ("missing 1 required positional argument: 'artifact'", (), {}),
        ("takes from .* positional arguments but .* were given", ("a", 2, 3), {}),
        ("got an unexpected keyword argument 'nonsense'", ("a",), {"nonsense": 1}),
        ("got multiple values for argument 'artifact'", ("a",), {"artifact": "b"}),
    ]
    for why, args, kwargs in bad:
        with pytest.raises(Refused, match=f"^job {task.name}: .*{why}; the job itself is its first argument"):
            start_signatures("SCAN", jobs=[a_job.s(), task.s(*args, **kwargs)])
        with pytest.raises(TypeError, match=why):
            task.delay(*args, **kwargs)
    assert Execution.objects.count() == 1


def takes_itself(self: Any, artifact: str) -> None:
    pass


def test_a_bound_task_without_a_handle_is_told_to_remove_its_bind() -> None:
    task = app.task(base=TrackedJob, name="bound, no handle", shared=False, bind=True)(takes_itself)
    todo = r"the job itself is its first argument, instead of self: remove bind=True$"
    with pytest.raises(Refused, match=todo):
        start_signatures("SCAN", jobs=[task.s("a")])
    with pytest.raises(TypeError, match=todo):
        task.delay("a")
    for plain in ("plain", "tried again"):
        with pytest.raises(TypeError, match=r"the job itself is its first argument, which is passed for you$"):
            TWO[plain].delay()


def test_in_a_chain_the_result_of_the_job_before_is_counted_as_an_argument() -> None:
    task = TWO["plain"]
    start_signatures("SCAN", jobs=[chain(a_job.s(), task.s()), chain(a_job.s(), task.s(2), task.si("a"))])
    for too_few_or_many in (task.si(), task.s(2, 3)):
        with pytest.raises(Refused, match=r"^job two: "):
            start_signatures("SCAN", jobs=[chain(a_job.s(), too_few_or_many)])
    assert Job.objects.count() == 5


@pytest.mark.parametrize("is_of_the_task", [True, False])
def test_arguments_are_not_checked_if_celery_would_not_check_them(is_of_the_task: bool) -> None:
    lax = Celery("x", set_as_current=False, strict_typing=is_of_the_task)
    options = {"typing": False} if is_of_the_task else {}
    task = lax.task(base=TrackedJob, name=f"any {is_of_the_task}", shared=False, **options)(takes_two)
    start_signatures("SCAN", jobs=[task.s(1, 2, 3, 4)])
    assert Job.objects.get().args == [1, 2, 3, 4]


NATIVE = {
    "uuid": UUID("5b2d0a70-4e4b-4a3f-9d0c-2a3d5f6e7a8b"),
    "moment": datetime(2026, 11, 23, 2, 30, tzinfo=UTC),
    "day": date(2026, 11, 23),
    "time": time(2, 30),
    "sum": Decimal("1.20"),
    "text": b"bytes",
    "more": [b"\xff\x00", {"deep": (Decimal("0.1"),)}],
}


@pytest.mark.usefixtures("at_once")
def test_values_that_celerys_json_takes_come_to_the_job_as_from_celery(outbox: Outbox) -> None:
    beats(this_worker.id)
    start("SCAN", [[NewJob("a.job", [*NATIVE.values()], dict(NATIVE), is_unique=True)]])
    got: list[Any] = []

    def work(job: Handle, *args: Any, **kwargs: Any) -> None:
        got.append((args, kwargs))

    delivered_to(work, *outbox.take())
    read = {**NATIVE, "more": [b"\xff\x00", {"deep": [Decimal("0.1")]}]}
    assert got == [(tuple(read.values()), read)]
    assert [type(value) for value in got[0][0]] == [type(value) for value in NATIVE.values()]


def test_jobs_by_themselves_or_in_any_iterable_are_started() -> None:
    pair = chain(a_job.si(), a_job.si())
    jobs: list[tuple[Any, list[int]]] = [
        (a_job.s(), [1]),
        (pair, [2]),
        (group([a_job.s(), a_job.s()]), [1, 1]),
        ([a_job.s(), pair], [1, 2]),
        (iter([a_job.s()]), [1]),
    ]
    for given, lengths in jobs:
        execution = start_signatures("SCAN", jobs=given)
        found = Job.objects.filter(task__execution=execution)
        assert (found.filter(needs=None).count(), found.count()) == (len(lengths), sum(lengths))


@pytest.mark.parametrize(
    "later", [lambda: {"eta": soon()}, lambda: {"eta": soon().isoformat()}, lambda: {"countdown": 60}]
)
def test_a_job_for_later_is_scheduled_and_only_its_first_run_waits(
    later: Callable[[], dict[str, Any]], outbox: Outbox
) -> None:
    execution = start_signatures("SCAN", jobs=[a_job.s().set(**later())])
    assert (outbox.take(), Task.objects.get().status) == ([], "Scheduled")
    found = Job.objects.get()
    assert (found.state, found.options.keys() - {"eta"}) == ("waiting", set())
    assert found.not_before is not None
    assert abs(found.not_before - soon()) < timedelta(seconds=120)
    execution.stop()
    assert execution.resume_stopped() == 1
    assert [message.options for message in outbox.messages] == [{}]


def test_the_target_of_a_hook_is_told_that_a_job_is_for_later(core: Target) -> None:
    start_signatures("SCAN", jobs=[a_job.s(), a_job.s().set(countdown=60)])
    wait_for(lambda: core.requests, "the report")
    assert [one.body["status"] for one in core.requests] == ["Scheduled"]


@pytest.mark.parametrize("past", [{"eta": None}, {"countdown": None}, {"eta": "2020-01-01T00:00:00"}])
def test_a_moment_of_the_past_is_none(past: dict[str, Any], outbox: Outbox) -> None:
    start_signatures("SCAN", jobs=[a_job.s().set(**past)])
    assert [message.options for message in outbox.messages] == [{}]
    assert Task.objects.get().status == "Pending"


@pytest.mark.parametrize(("eta", "countdown"), [(None, 3_600), (60, 3_600), (3_600, 60)])
def test_the_countdown_of_a_job_in_a_chain_begins_with_its_turn_and_of_its_eta_and_that_the_later_counts(
    eta: int | None, countdown: int, outbox: Outbox
) -> None:
    now = datetime.now(UTC)
    then = a_job.si().set(eta=eta and now + timedelta(seconds=eta), countdown=countdown)
    start_signatures("SCAN", jobs=[chain(a_job.si(), then)])
    assert len(outbox.take()) == 1
    first, second = Job.objects.order_by("pk")
    report([Report(first.pk, "Success", 0)])
    second.refresh_from_db()
    assert second.not_before is not None
    assert timedelta(0) <= second.not_before - now - timedelta(hours=1) < timedelta(seconds=60)


def test_the_id_that_celery_sets_in_a_chain_is_not_the_id_of_the_job(outbox: Outbox) -> None:
    start_signatures("SCAN", jobs=[a_job.s().set(task_id="mine")])
    assert [(message.job == "mine", message.options) for message in outbox.messages] == [(False, {})]


def test_jobs_are_waited_for_outside_a_transaction_alone_because_they_begin_after_the_commit() -> None:
    execution = start_signatures("SCAN", open=True)
    with transaction.atomic():
        execution.add([a_job.s()])
        with pytest.raises(NotCommitted, match="has not ended: call wait"):
            execution.wait(timeout=0)
    with pytest.raises(StillRunning):
        execution.wait(timeout=0)
    execution.stop()
    with transaction.atomic():
        assert execution.wait(timeout=0) == "Stopped"
        assert start_signatures("SCAN", jobs=[]).wait() == "Success", "it has no jobs"


@pytest.mark.usefixtures("replica")
def test_an_execution_is_read_from_the_primary_if_a_project_reads_from_a_replica_that_lags() -> None:
    assert router.db_for_read(TrackedExecution) == router.db_for_write(TrackedExecution) == "default"
    started = start_signatures("SCAN", jobs=[])
    assert TrackedExecution.objects.get(pk=started.pk).status == "Success"


def test_without_our_functions_the_error_says_to_migrate() -> None:
    """Tests that make tables without migrations, as `--nomigrations` does, have none."""
    with connection.cursor() as cursor:
        cursor.execute("ALTER FUNCTION execution_turn RENAME TO elsewhere")
    with pytest.raises(NotMigrated, match=r"function execution_turn.* type: python manage\.py migrate$"):
        start_signatures("SCAN", jobs=[a_job.s()])


# many jobs: an iterable is read a page at a time, and all of them are recorded, or none


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_rows, "BATCH", 10)


def numbered(count: int, read: list[int] | None = None) -> Iterator[Part]:
    for number in range(count):
        if read is not None:
            read.append(Job.objects.count())
        yield [NewJob("a.job", [number])]


@pytest.mark.usefixtures("small_pages")
def test_many_jobs_are_recorded_in_their_order_while_the_iterable_is_read(outbox: Outbox) -> None:
    read: list[int] = []
    execution = start("SCAN", numbered(45, read))
    assert read[-1] == 40, "all pages before the last one are written"
    assert [one.args for one in Job.objects.order_by("pk")] == [[number] for number in range(45)]
    assert len(outbox.taken()) == 45
    assert add(execution.pk, numbered(35), once="all") == 35
    assert add(execution.pk, numbered(35), once="all") == 0


@pytest.mark.usefixtures("small_pages")
def test_a_unique_job_of_an_earlier_page_is_left_out_of_a_later_one_and_nothing_is_started_of_none() -> None:
    jobs = [[NewJob("a.job", [number % 12], is_unique=True)] for number in range(24)]
    assert start("SCAN", jobs).tasks.count() == 12
    with pytest.raises(AlreadyUnderWay):
        start("SCAN", jobs)
    assert Execution.objects.count() == 1


# metadata: the attributes of the task of a job, which are not sent


def with_meta(meta: Any) -> Any:
    return a_job.si().set(meta=meta, queue="slow")


def test_the_task_of_a_job_has_its_metadata_and_its_message_has_none(outbox: Outbox) -> None:
    first, then = with_meta({"layer": 1}), with_meta({"layer": 2, "of": ["a", None]})
    execution = start_signatures("SCAN", jobs=[chain(first, then), a_job.si(), with_meta(None)])
    execution.add([with_meta({"layer": 5})])
    kept = [{"layer": 1}, {"layer": 2, "of": ["a", None]}, {}, {}, {"layer": 5}]
    assert list(Task.objects.order_by("pk").values_list("extra_attrs", flat=True)) == kept
    slow = {"queue": "slow"}
    assert list(Job.objects.order_by("pk").values_list("options", flat=True)) == [slow, slow, {}, slow, slow]
    assert all("meta" not in message.options for message in outbox.messages)


def test_large_metadata_are_written_in_statements_of_a_few_megabytes() -> None:
    """PostgreSQL takes none of a gigabyte."""
    with CaptureQueriesContext(connection) as asked:
        execution = start("SCAN", [[NewJob("a.job", meta={"n": n, "x": "x" * 1_000_000})] for n in range(9)])
    assert max(len(one["sql"]) for one in asked) < 5_000_000
    assert list(execution.tasks.order_by("pk").values_list("extra_attrs__n", flat=True)) == [*range(9)]


@pytest.mark.parametrize(
    ("meta", "why"),
    [
        ("layer 7", r"a.job: meta takes a dict, as in \.set\(meta={'layer': 7}\), and got 'layer 7'"),
        ({"layer": UUID(int=7)}, "takes a dict that is JSON"),
        ({"layer": "a" * MAX_JSON}, "takes a dict that is JSON of at most 2,000,000 bytes"),
    ],
)
def test_metadata_that_cannot_be_stored_are_refused_and_nothing_is_written(
    meta: Any, why: str, outbox: Outbox
) -> None:
    with pytest.raises(Refused, match=why):
        start_signatures("SCAN", jobs=[a_job.s(), with_meta(meta)])
    execution = start_signatures("SCAN", open=True)
    with pytest.raises(Refused, match=why):
        execution.add([a_job.s(), with_meta(meta)], once="k")
    counts = [model.objects.count() for model in (Execution, Task, Job, Addition)]
    assert (counts, outbox.messages) == ([1, 1, 0, 0], [])
