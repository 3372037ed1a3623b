"""`async def` jobs: they run as plain ones do, with asynchronous queries on the connection of the job."""

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from billiard.exceptions import SoftTimeLimitExceeded
from billiard.pool import soft_timeout_sighandler
from celery import Task, chain, current_app, current_task, shared_task
from django.contrib.auth.models import Group
from django.db import connection, transaction

from harbor_refresh.executions.errors import Refused
from harbor_refresh.executions.models import Execution
from harbor_refresh.tasks.jobs import Handle, TrackedExecution, TrackedJob, astart, start
from harbor_refresh.tasks.jobs.running import coroutines
from harbor_refresh.testing import eager, worker

pytestmark = pytest.mark.usefixtures("database")

said: list[Any] = []


@pytest.fixture(autouse=True)
def nothing_is_said() -> None:
    said.clear()


@shared_task(base=TrackedJob, name="async.fetch", keep_result=True)
async def fetch(job: Handle, url: str, *, seconds: float = 0.01) -> str:
    """The page at this address."""
    await asyncio.sleep(seconds)
    said.append(url)
    return f"page of {url}"


@shared_task(base=TrackedJob, name="async.joined", keep_result=True)
async def joined(job: Handle, before: str, after: str) -> str:
    pages = await asyncio.gather(asyncio.sleep(0.01, before), asyncio.sleep(0.01, after))
    return " and ".join(pages)


@shared_task(base=TrackedJob, name="async.plain", keep_result=True)
def plain(job: Handle, before: str) -> str:
    return before.upper()


@shared_task(base=TrackedJob, name="async.queries")
async def queries(job: Handle, name: str) -> None:
    await Group.objects.acreate(name=name)
    said.append(await Group.objects.acount())
    said.append(await sync_to_async(lambda: (threading.get_ident(), id(connection.connection)))())
    said.append((await sync_to_async(lambda: job.execution)()).pk)
    execution = job.execution  # it waits, and does not break the rules of Django
    said.append((execution.pk, (await execution.aprogress()).total))


@shared_task(base=TrackedJob, name="async.flaky", max_attempts=4)
async def flaky(job: Handle, failures: int) -> None:
    said.append(("flaky", current_task.request.retries, current_task.name))
    await asyncio.sleep(0)
    if failures:
        job.retry(args=[failures - 1], exc=OSError("not yet"), countdown=0)


@shared_task(base=TrackedJob, name="async.careful", autoretry_for=(OSError,), max_retries=3, default_retry_delay=0)
async def careful(job: Handle) -> None:
    await asyncio.sleep(0)
    said.append("careful")
    if len(said) < 3:
        raise OSError("not yet")


@shared_task(base=TrackedJob, name="async.stops_itself")
async def stops_itself(job: Handle) -> None:
    said.append(job.should_stop())
    await job.execution.astop()
    said.append(job.should_stop())


@shared_task(base=TrackedJob, name="async.starts", bind=True)
async def starts(self: "Task[Any, Any]", job: Handle) -> None:
    child = await astart("SCAN", jobs=[fetch.s("child")], parent=job.execution)
    said.append((self.name, self.request.id == job.run.job, child.pk > job.execution.pk))


class Fetch(TrackedJob):
    name = "async.of_a_class"

    async def run(self, job: Handle, url: str) -> None:  # type: ignore[override]
        await asyncio.sleep(0)
        said.append((self.name, url))


of_a_class = current_app.register_task(Fetch())


def ended(execution: TrackedExecution) -> tuple[str, dict[str, int]]:
    return execution.wait(timeout=60), execution.progress().counts


def test_async_jobs_chains_and_results_in_a_worker() -> None:
    """celery#6552: an `async def` is a task."""
    jobs = [fetch.s("a"), chain(fetch.s("b"), joined.s("c"), plain.s())]
    with worker():
        execution = start("SCAN", jobs=jobs)
        assert ended(execution) == ("Success", {"Success": 4})
    assert sorted(said) == ["a", "b"]
    assert [one.value for one in execution.results()] == [
        "page of a",
        "page of b",
        "page of b and c",
        "PAGE OF B AND C",
    ]


def test_asynchronous_queries_use_the_connection_of_the_job() -> None:
    with worker():
        execution = start("SCAN", jobs=[queries.s("a"), queries.s("b")])
        assert ended(execution) == ("Success", {"Success": 2})
    counts, connections, pks, more = said[::4], said[1::4], said[2::4], said[3::4]
    assert (counts[1] - counts[0], set(pks), set(more)) == (1, {execution.pk}, {(execution.pk, 2)})
    assert len({thread for thread, _ in connections}) == 1


def test_another_try_and_a_failure() -> None:
    with worker():
        execution = start("SCAN", jobs=[flaky.s(2), careful.s()])
        assert ended(execution) == ("Success", {"Success": 2})
        assert sorted(one[1] for one in said if one != "careful") == [0, 1, 2]
        assert {one[2] for one in said if one != "careful"} == {"async.flaky"}
        failing = start("SCAN", jobs=[joined.s("a", 5)])
        assert ended(failing) == ("Error", {"Error": 1})
    assert failing.tasks.get().status_message.startswith("TypeError: sequence item 1: expected str instance")


def eager_alone(work: Callable[[], TrackedExecution]) -> TrackedExecution:
    with eager():
        return work()


def eager_in_a_transaction(work: Callable[[], TrackedExecution]) -> TrackedExecution:
    with transaction.atomic(), eager():
        Group.objects.create(name="of the test")
        execution = work()
        said.append(Group.objects.count())
        transaction.set_rollback(True)
    return execution


@pytest.mark.parametrize("run", [eager_alone, eager_in_a_transaction])
def test_eager_jobs_run_outside_of_a_loop(run: Callable[..., TrackedExecution]) -> None:
    found: dict[str, Any] = {}

    def work() -> TrackedExecution:
        execution = start("SCAN", jobs=[fetch.s("a"), flaky.s(1), queries.s("g"), of_a_class.s("b"), starts.s()])
        found.update(execution.tasks.values_list("job__name", "status"))
        return execution

    before = Group.objects.count()
    run(work)
    names = ("async.fetch", "async.flaky", "async.queries", "async.of_a_class", "async.starts", None)
    assert found == dict.fromkeys(names, "Success")
    assert ("async.of_a_class", "b") in said
    assert ("async.starts", True, True) in said
    in_a_test = run is eager_in_a_transaction
    assert said[2] == before + 1 + in_a_test, "the job sees the rows of the transaction"
    if in_a_test:
        assert said[-1] == said[2], "and the transaction those of the job"


@pytest.mark.parametrize("outer", ["asyncio.run", "async_to_sync"])
def test_eager_jobs_run_inside_of_a_loop(outer: str) -> None:
    def close() -> None:
        connection.close()  # that of the thread in which this is called

    async def main() -> None:
        with eager():
            execution = await astart("SCAN", jobs=[fetch.s("a"), flaky.s(1), queries.s("g"), stops_itself.s()])
            counts.append((await execution.aprogress()).counts)
            await sync_to_async(close)()

    counts: list[dict[str, int]] = []
    asyncio.run(main()) if outer == "asyncio.run" else async_to_sync(main)()
    assert counts == [{"Success": 2, "Stopped": 2}], "another try waits when the execution is stopped"
    assert said[-2:] == [False, True]


def test_it_is_called_like_a_function_as_well() -> None:
    assert fetch("a") == "page of a"
    assert fetch.name == "async.fetch"
    assert fetch.__doc__ == "The page at this address."
    with pytest.raises(Refused, match="missing 1 required positional argument: 'url'"):
        start("SCAN", jobs=[fetch.s()])


@pytest.fixture
def soft_limits() -> Iterator[None]:
    """As in a process of the pool prefork."""
    before = signal.signal(signal.SIGUSR1, soft_timeout_sighandler)
    yield
    assert signal.getsignal(signal.SIGUSR1) is soft_timeout_sighandler
    signal.signal(signal.SIGUSR1, before)


def limit_strikes(after: float = 0.2) -> None:
    threading.Timer(after, os.kill, (os.getpid(), signal.SIGUSR1)).start()


@pytest.mark.usefixtures("soft_limits")
def test_a_soft_time_limit_is_raised_where_the_coroutine_waits() -> None:
    async def waits(catches: bool) -> str:
        try:
            await asyncio.gather(asyncio.sleep(600), asyncio.Event().wait())
        except SoftTimeLimitExceeded:
            if not catches:
                raise
            await asyncio.sleep(0.05)
            return "tidied up"
        return "never"

    limit_strikes()
    assert coroutines.plain(waits)(True) == "tidied up"
    limit_strikes()
    with pytest.raises(SoftTimeLimitExceeded):
        coroutines.plain(waits)(False)


@pytest.mark.usefixtures("soft_limits")
def test_a_soft_time_limit_is_raised_behind_a_query_of_the_job() -> None:
    async def asks() -> None:
        await sync_to_async(time.sleep)(0.6)
        said.append("never")

    limit_strikes()
    with pytest.raises(SoftTimeLimitExceeded):
        coroutines.plain(asks)()
    assert said == []


def test_a_cancellation_of_its_own_is_a_failure_as_any() -> None:
    async def cancels() -> None:
        task = asyncio.current_task()
        assert task
        task.cancel()
        await asyncio.sleep(0)

    with pytest.raises(asyncio.CancelledError):
        coroutines.plain(cancels)()


def test_green_threads_are_refused_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coroutines, "detect_environment", lambda: "gevent")
    with pytest.raises(RuntimeError, match="runs in the pools prefork, threads and solo, not with gevent"):
        fetch("a")
    assert not Execution.objects.exists()
