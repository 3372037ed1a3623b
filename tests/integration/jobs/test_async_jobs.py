"""`async def` jobs: they run as plain ones do, with asynchronous queries on the connection of the job. And the
twins of `start`, `wait` and the rest for asynchronous code."""

import asyncio
import inspect
import os
import signal
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from billiard.exceptions import SoftTimeLimitExceeded
from billiard.pool import soft_timeout_sighandler
from celery import chain, current_app, current_task, shared_task
from django.contrib.auth.models import Group
from django.db import connection, transaction

from harbor_refresh.executions.errors import Refused, StillRunning
from harbor_refresh.executions.models import Execution
from harbor_refresh.tasks.jobs import Handle, TrackedExecution, TrackedJob, astart, start
from harbor_refresh.tasks.jobs.running import coroutines
from harbor_refresh.testing import eager, worker
from tests.integration.jobs.sample_jobs import Outbox, ends

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


class OfAClass(TrackedJob):
    name = "async.of_a_class"
    autoretry_for = (OSError,)
    default_retry_delay = 0

    async def run(self, job: Handle, word: str) -> None:
        await asyncio.sleep(0)
        said.append(word)
        if len(said) < 3:
            raise OSError("not yet")


class OfASubclass(OfAClass):
    name = "async.of_a_subclass"

    async def run(self, job: Handle, word: str) -> None:
        await super().run(job, word)
        said.append("below")


@shared_task(base=TrackedJob, name="async.stops_itself")
async def stops_itself(job: Handle) -> None:
    said.append(job.should_stop())
    await job.execution.astop()
    said.append(job.should_stop())


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


def test_an_async_job_that_is_a_class_is_tried_again() -> None:
    task = current_app.register_task(OfAClass())
    with worker():
        assert ended(start("SCAN", jobs=[task.s("a")])) == ("Success", {"Success": 1})
    assert said == ["a"] * 3


def test_an_async_job_that_is_a_subclass_awaits_the_run_of_its_base() -> None:
    task = current_app.register_task(OfASubclass())
    with worker():
        assert ended(start("SCAN", jobs=[task.s("a")])) == ("Success", {"Success": 1})
    assert said == ["a", "a", "a", "below"]


def test_asynchronous_queries_use_the_connection_of_the_job() -> None:
    with worker():
        execution = start("SCAN", jobs=[queries.s("a"), queries.s("b")])
        assert ended(execution) == ("Success", {"Success": 2})
    counts, connections, pks, more = said[::4], said[1::4], said[2::4], said[3::4]
    assert (counts[1] - counts[0], set(pks), set(more)) == (1, {execution.pk}, {(execution.pk, 2)})
    assert len({thread for thread, _ in connections}) == 1


def test_eager_jobs_run_outside_of_a_loop_and_in_a_transaction() -> None:
    with transaction.atomic(), eager():
        before = Group.objects.count()
        Group.objects.create(name="of the test")
        execution = start("SCAN", jobs=[fetch.s("a"), flaky.s(1), queries.s("g"), careful.s(), joined.s("a", 5)])
        assert execution.progress().counts == {"Success": 4, "Error": 1}
        assert Group.objects.count() == before + 2, "the transaction sees the rows of the job"
        transaction.set_rollback(True)
    assert said[2] == before + 2, "and the job those of the transaction"


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
def test_a_soft_time_limit_is_raised_behind_a_query_of_the_job() -> None:
    async def asks() -> None:
        await sync_to_async(time.sleep)(0.6)
        said.append("never")

    limit_strikes()
    with pytest.raises(SoftTimeLimitExceeded):
        coroutines.plain(asks)()
    assert said == []


@pytest.mark.usefixtures("soft_limits")
def test_a_soft_time_limit_ends_the_tasks_of_a_group_before_the_job_cleans_up() -> None:
    async def child() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            said.append("child")

    async def parent() -> None:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(child())
        finally:
            await asyncio.sleep(0)
            said.append("clean-up")

    limit_strikes()
    with pytest.raises(SoftTimeLimitExceeded) as raised:
        coroutines.plain(parent)()
    assert said == ["child", "clean-up"]
    assert "parent" in [one.name for one in raised.traceback], "it says where the limit struck"


def test_a_coroutine_below_a_plain_function_of_a_job_reads_the_database() -> None:
    """The thread of the job waits for that coroutine, and runs what it asks for."""

    async def inner() -> None:
        said.append(coroutines.outside_of_the_loop(threading.get_ident))

    async def outer() -> None:
        await sync_to_async(async_to_sync(inner))()
        said.append(coroutines.outside_of_the_loop(threading.get_ident))

    thread = threading.Thread(target=coroutines.plain(outer), daemon=True)
    thread.start()
    thread.join(30)
    assert said == [thread.ident] * 2


def test_a_plain_function_is_not_wrapped() -> None:
    """The backend of Django's Tasks gives each function to it."""
    assert coroutines.plain(len) is len


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


# the twins of `start`, `wait` and the rest for asynchronous code


@shared_task(base=TrackedJob, name="twins.copy")
def copy(job: Handle, number: int = 0) -> None:
    pass


def test_an_execution_is_started_followed_and_awaited(outbox: Outbox) -> None:
    async def main() -> None:
        execution = await astart("SCAN", vendor_id=7, jobs=[copy.s(1)], open=True, close_after=60)
        assert type(execution) is TrackedExecution
        assert [await execution.aadd([copy.s(2)], once="page") for _ in range(2)] == [1, 0]
        assert await execution.aclose() is True
        assert (await execution.aprogress()).counts == {"Pending": 2}

        waiting = asyncio.create_task(execution.await_end(timeout=60))
        with pytest.raises(StillRunning, match=r"Running after 0\.2 s"):
            await execution.await_end(timeout=0.2)
        assert not waiting.done()
        await sync_to_async(ends)(execution, "Error")
        assert await waiting == "Error"

        assert await execution.aretry_failed() == 2
        assert execution.status == "Running"
        assert await execution.astop() == 0
        assert execution.status == "Stopped"
        assert await execution.aresume_stopped() == 2
        assert execution.status == "Running"

    async_to_sync(main)()
    assert len(outbox.messages) == 6


@pytest.mark.usefixtures("outbox")
def test_many_wait_and_hold_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """While 200 tasks wait, the loop and its one thread for the database are free: nothing sleeps in either, and
    no thread was added."""
    without_sleep = SimpleNamespace(monotonic=time.monotonic)
    monkeypatch.setattr("harbor_refresh.tasks.jobs.tracked_execution.time", without_sleep)

    async def main() -> None:
        execution = await astart("SCAN", jobs=[copy.s(1)])
        before = threading.active_count()
        others = [await TrackedExecution.objects.aget(pk=execution.pk) for _ in range(200)]
        waiting = [asyncio.create_task(one.await_end(timeout=120)) for one in others]
        await asyncio.sleep(0.1)
        assert threading.active_count() <= before + 1
        await sync_to_async(ends)(execution)
        assert set(await asyncio.gather(*waiting)) == {"Success"}

    async_to_sync(main)()


@pytest.mark.usefixtures("outbox")
def test_twins_work_in_eager_mode_and_have_the_signatures_of_what_they_do() -> None:
    async def main() -> None:
        execution = await astart("SCAN", jobs=[copy.s(1)])
        assert (execution.status, await execution.await_end()) == ("Success", "Success")
        opened = await astart("SCAN", open=True)
        with pytest.raises(StillRunning, match="in eager mode"):
            await opened.await_end()

    with eager():
        async_to_sync(main)()
    twins = [astart, TrackedExecution.aprogress, TrackedExecution.aadd]
    assert all(inspect.iscoroutinefunction(one) for one in twins)
    assert inspect.signature(astart) == inspect.signature(start)
