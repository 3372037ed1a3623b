"""Eager jobs: each runs at once, and all is told when `start` returns, with PostgreSQL alone."""

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest
from celery import chain, shared_task
from django.db import IntegrityError, connection, transaction
from django.db.models.functions import Now
from redis import Redis

from harbor_refresh.executions.errors import ExecutionClosed, StillRunning
from harbor_refresh.executions.models import Delivery, Execution, StatusChange, Task
from harbor_refresh.executions.news import handlers
from harbor_refresh.executions.news.handlers import Change, on_execution
from harbor_refresh.tasks.jobs import EndedExecution, Handle, TrackedJob, start
from harbor_refresh.tasks.jobs.running import eager as eager_mode
from harbor_refresh.tasks.models.job import Job, JobState
from harbor_refresh.tasks.without_redis import agenda
from harbor_refresh.testing import eager, fail_job
from tests.integration.concurrency import at_once

said: list[Any] = []


@pytest.fixture(autouse=True, params=["after each commit", "in the transaction of a test"])
def jobs_are_eager(
    request: pytest.FixtureRequest, database: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """In a transaction that is never committed as well, as in Django's TestCase. No command reaches Redis."""

    def refuse(*args: Any, **_: Any) -> None:
        raise AssertionError(f"a command to Redis: {args[1:]}")

    said.clear()
    monkeypatch.setattr(Redis, "execute_command", refuse)
    is_open = request.param != "after each commit"
    with transaction.atomic() if is_open else nullcontext(), eager():
        yield
        if is_open:
            transaction.set_rollback(True)


@shared_task(base=TrackedJob, name="eager.say")
def say(job: Handle, *words: Any) -> Any:
    said.append((*words, job.execution.status))
    return words[-1]


@shared_task(base=TrackedJob, name="eager.impatient", default_retry_delay=3600, max_attempts=4)
def impatient(job: Handle, word: str, tries: int) -> None:
    said.append((word, tries, job._task.request.retries, job.execution.status))
    if tries:
        job.retry(args=[word, tries - 1], exc=OSError("not yet"))


@shared_task(base=TrackedJob, name="eager.careful", autoretry_for=(OSError,), max_retries=2)
def careful(job: Handle, word: str) -> None:
    said.append(word)


class OfTheProject(TrackedJob):
    """A base whose hooks may raise before the run of a job has begun."""

    abstract = True

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if self.name == "eager.called":
            raise LookupError("no tenant")
        return super().__call__(*args, **kwargs)

    def before_start(self, *_: Any) -> None:
        if self.name == "eager.started":
            raise LookupError("no tenant")


@shared_task(base=OfTheProject, name="eager.called")
def called(job: Handle) -> None:
    said.append("called")


@shared_task(base=OfTheProject, name="eager.started")
def started(job: Handle) -> None:
    said.append("started")


@shared_task(base=TrackedJob, name="eager.writes")
def writes(job: Handle, way: str) -> None:
    write_and_fail(way)


@shared_task(name="eager.writes_at_the_end")
def writes_at_the_end(ended: EndedExecution, way: str) -> None:
    write_and_fail(way)


def write_and_fail(way: str) -> None:
    """Write a row, then fail: in Python, or by a statement that PostgreSQL refuses."""
    Execution.objects.create(vendor_type="ITS_ROW")
    if way == "python":
        raise ValueError("after its row")
    with transaction.atomic() if way == "in atomic" else nullcontext():
        connection.cursor().execute("INSERT INTO execution (id) VALUES (NULL)")


@shared_task(base=TrackedJob, name="eager.crawl")
def crawl(job: Handle, depth: int) -> None:
    said.append(depth)
    if depth:
        job.execution.add([crawl.s(depth - 1)])


@shared_task(base=TrackedJob, name="eager.parent")
def parent(job: Handle, waits: bool) -> None:
    child = start("CHILD", jobs=[say.s("child")], parent=job.execution)
    said.append(("parent", child.wait() if waits else child.status))


@shared_task(name="eager.told")
def told(ended: EndedExecution, word: str) -> None:
    assert ended.execution
    said.append((word, ended.status, ended.execution.progress().counts))


@shared_task(name="eager.broken")
def broken(ended: EndedExecution) -> None:
    raise OSError("no mail")


def tasks_of(execution: Execution) -> list[tuple[str, int, str]]:
    rows = execution.tasks.exclude(job_id="").order_by("pk")
    return list(rows.values_list("status", "status_revision", "status_message"))


def test_jobs_run_in_order_and_the_execution_has_ended_when_start_returns() -> None:
    execution = start("SCAN", jobs=[say.s(1), say.s(2)], on_success=told.s("done"), on_error=told.s("failed"))
    assert said == [(1, "Running"), (2, "Running"), ("done", "Success", {"Success": 2})]
    assert (execution.status, execution.wait()) == ("Success", "Success")
    assert execution.progress().counts == {"Success": 2}
    changes = StatusChange.objects.filter(execution=execution).values_list("from_status", "to_status")
    assert list(changes) == [("Running", "Success")]


def test_a_job_that_fails_makes_an_error_and_the_others_run() -> None:
    with fail_job("eager.say", times=1, with_=OSError("disk")):
        execution = start("SCAN", jobs=[say.s(1), say.s(2)], on_error=told.s("failed"), on_success=told.s("done"))
    assert said == [(2, "Running"), ("failed", "Error", {"Error": 1, "Success": 1})]
    assert tasks_of(execution) == [("Error", 0, "OSError: disk"), ("Success", 0, "")]
    assert execution.status == "Error"

    assert execution.retry_failed() == 1
    assert execution.status == "Success"
    assert said[2:] == [(1, "Running"), ("done", "Success", {"Success": 2})]
    assert tasks_of(execution) == [("Success", 1, ""), ("Success", 0, "")]


@pytest.mark.parametrize("job", [called, started])
def test_a_job_ends_as_error_if_code_of_the_project_raises_before_its_run_begins(job: Any) -> None:
    execution = start("SCAN", jobs=[chain(job.si(), say.si(1)), say.s(2)])
    assert said == [(2, "Running")]
    assert execution.status == "Error"
    assert execution.progress().counts == {"Error": 1, "Stopped": 1, "Success": 1}
    failed = execution.tasks.get(status="Error")
    assert failed.status_message == "LookupError: no tenant"
    assert failed.job.kept_end.traceback.endswith('raise LookupError("no tenant")\nLookupError: no tenant\n')
    assert "celery" not in failed.job.kept_end.traceback


def test_a_retry_runs_at_once_with_its_arguments_behind_the_other_jobs() -> None:
    execution = start("SCAN", jobs=[impatient.s("a", 2), impatient.s("b", 0)])
    assert said == [("a", 2, 0, "Running"), ("b", 0, 0, "Running"), ("a", 1, 1, "Running"), ("a", 0, 2, "Running")]
    assert tasks_of(execution) == [("Success", 2, ""), ("Success", 0, "")]


def test_a_countdown_is_over_at_once() -> None:
    later = say.si(2).set(countdown=3600)
    assert start("SCAN", jobs=[later, chain(say.s(1), later)]).status == "Success"
    assert [word for word, _ in said] == [2, 1, 2]


def test_retries_end_with_max_retries_and_with_max_attempts() -> None:
    execution = start("SCAN", jobs=[impatient.s("a", 100)])
    assert len(said) == 4
    assert tasks_of(execution) == [("Error", 3, "OSError: not yet")]

    with fail_job("eager.careful", with_=OSError("disk")):
        again = start("SCAN", jobs=[careful.s("a")])
    assert tasks_of(again) == [("Error", 2, "OSError: disk")]


def test_a_chain_hands_on_results_behind_the_other_jobs() -> None:
    execution = start("SCAN", jobs=[chain(say.s(1), say.s(2), say.si(3)), say.s(9)])
    assert said == [(1, "Running"), (9, "Running"), (1, 2, "Running"), (3, "Running")]
    assert execution.status == "Success"


def test_an_open_execution_runs_what_is_added_and_ends_when_it_is_closed() -> None:
    execution = start("SCAN", open=True, on_success=told.s("done"))
    assert execution.add([say.s(1)], once="page 1") == 1
    assert execution.add([say.s(1)], once="page 1") == 0
    assert said == [(1, "Running")]
    with pytest.raises(StillRunning, match="in eager mode nothing runs that could end it"):
        execution.wait()
    assert execution.close()
    assert said[1:] == [("done", "Success", {"Success": 1})]
    assert execution.wait() == "Success"
    with pytest.raises(ExecutionClosed):
        execution.add([say.s(2)])


def test_a_job_adds_jobs_however_deep() -> None:
    execution = start("SCAN", jobs=[crawl.s(60)])
    assert said == [*range(60, -1, -1)]
    assert execution.progress().counts == {"Success": 61}


@pytest.mark.parametrize(("waits", "order"), [(False, ["parent", "child"]), (True, ["child", "parent"])])
def test_a_child_runs_behind_the_job_that_starts_it_unless_the_job_waits_for_it(
    waits: bool, order: list[str]
) -> None:
    execution = start("SCAN", jobs=[parent.s(waits)], on_success=told.s("done"))
    assert [one[0] for one in said] == [*order, "done"]
    assert said[-1] == ("done", "Success", {"Success": 2})
    assert execution.status == "Success"


@pytest.mark.parametrize("way", ["python", "in atomic", "in no atomic"])
def test_a_statement_that_postgresql_refuses_fails_its_job_alone(way: str) -> None:
    """What the job had written before stays, as behind a worker, unless the transaction is the caller's."""
    execution = start("SCAN", jobs=[writes.s(way), say.s(2)])
    assert [status for status, *_ in tasks_of(execution)] == ["Error", "Success"]
    is_kept = way != "in no atomic" or not connection.in_atomic_block
    assert Execution.objects.filter(vendor_type="ITS_ROW").count() == is_kept


@pytest.mark.parametrize("way", ["python", "in atomic", "in no atomic"])
def test_a_statement_that_postgresql_refuses_fails_its_callback_alone(way: str) -> None:
    execution = start("SCAN", jobs=[say.s(1)], on_complete=[writes_at_the_end.s(way), told.s("told")])
    assert said == [(1, "Running"), ("told", "Success", {"Success": 1})]
    assert execution.status == "Success"
    assert start("SCAN", jobs=[say.s(2)]).status == "Success"
    states = Delivery.objects.order_by("subscription__name").values_list("subscription__handler", "state")
    assert list(states) == [("eager.told", "delivered"), ("eager.writes_at_the_end", "pending")]
    is_kept = way != "in no atomic" or not connection.in_atomic_block
    assert Execution.objects.filter(vendor_type="ITS_ROW").count() == is_kept


def test_handlers_are_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handlers, "_registered", {})

    @on_execution("SCAN", status="Error")
    def alert(change: Change) -> None:
        said.append(("alert", change.to_status, change.first_failures[0].message))

    @on_execution(status=[])
    def every_change(change: Change) -> None:
        said.append(("change", change.to_status))

    with fail_job("eager.say", with_=OSError("disk")):
        start("SCAN", jobs=[say.s(1)])
    start("SCAN", jobs=[])
    assert sorted(said) == [("alert", "Error", "OSError: disk"), ("change", "Error"), ("change", "Success")]


def test_with_eager_propagates_the_first_error_is_raised_when_all_is_recorded() -> None:
    error = OSError("disk")
    with eager(propagates=True), fail_job("eager.say", times=1, with_=error):
        with pytest.raises(OSError, match="disk") as raised:
            start("SCAN", jobs=[say.s(1), say.s(2)], on_error=told.s("failed"))
        assert raised.value is error
        assert said == [(2, "Running"), ("failed", "Error", {"Error": 1, "Success": 1})]
        assert Execution.objects.get().status == "Error"

        with pytest.raises(OSError, match="no mail"):
            start("SCAN", jobs=[say.s(3)], on_success=broken.s())
        assert start("SCAN", jobs=[say.s(4)]).status == "Success"


def test_what_a_rolled_back_transaction_started_is_gone() -> None:
    def start_and_fail() -> None:
        with transaction.atomic():
            assert start("SCAN", jobs=[say.s(1)]).status == "Success"
            transaction.on_commit(lambda: said.append("committed"))
            raise IntegrityError

    with pytest.raises(IntegrityError):
        start_and_fail()
    assert said == [(1, "Running")]
    assert (Execution.objects.count(), Task.objects.count()) == (0, 0)


def test_executions_that_have_ended_or_were_rolled_back_are_forgotten() -> None:
    start("SCAN", jobs=[say.s(1)])
    with transaction.atomic():
        start("SCAN", jobs=[say.s(2)], open=True)
        transaction.set_rollback(True)
    goes_on = start("SCAN", jobs=[say.s(3)], open=True)
    last = start("SCAN", jobs=[say.s(4)])
    assert set(eager_mode._started) == {goes_on.pk, last.pk}


def test_a_job_that_another_thread_has_run_meanwhile_stays_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    def run_all() -> None:
        eager_mode.put_next()
        agenda.work_off()

    def another_thread_is_first() -> Now:
        monkeypatch.setattr(eager_mode, "Now", Now)
        at_once(run_all)
        return Now()

    monkeypatch.setattr(eager_mode, "Now", another_thread_is_first)
    execution = start("SCAN", jobs=[say.s(1)])
    assert said == [(1, "Running")]
    assert (execution.status, Job.objects.get().state) == ("Success", JobState.ENDED)


def test_calls_of_the_project_wait_for_its_commit() -> None:
    with transaction.atomic():
        transaction.on_commit(lambda: said.append("committed"))
        start("SCAN", jobs=[say.s(1)])
        assert said == [(1, "Running")]
    assert said[1:] == ([] if connection.in_atomic_block else ["committed"])


def test_only_jobs_can_be_made_to_fail() -> None:
    for name in ("eager.sya", "eager.told"):
        with (
            pytest.raises(LookupError, match=f"^no job '{name}' is registered here; there are .*eager.say"),
            fail_job(name),
        ):
            pass
    with fail_job("eager.say"), fail_job("eager.say", times=1, with_=OSError("disk")):
        first, second = start("SCAN", jobs=[say.s(1), say.s(2)]).tasks.order_by("pk")
    assert (first.status_message, second.status_message) == (
        "OSError: disk",
        "RuntimeError: the test has eager.say fail",
    )
    assert start("SCAN", jobs=[say.s(1)]).status == "Success"
