"""The twins of `start`, `wait` and the rest for asynchronous code."""

import asyncio
import inspect
import threading
import time
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from celery import shared_task
from django.db import connection

from harbor_refresh.executions.errors import Refused, StillRunning
from harbor_refresh.tasks.jobs import Handle, TrackedExecution, TrackedJob, astart, start
from harbor_refresh.testing import eager
from tests.integration.jobs.sample_jobs import Outbox, ends

pytestmark = pytest.mark.usefixtures("database", "outbox")


@shared_task(base=TrackedJob, name="twins.copy")
def copy(job: Handle, number: int = 0) -> None:
    pass


def in_a_loop_of_its_own(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    def close() -> None:
        connection.close()  # that of the thread in which this is called

    async def and_close() -> None:
        try:
            await main()
        finally:
            await sync_to_async(close)()

    asyncio.run(and_close())


def on_the_thread_of_the_caller(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async_to_sync(main)()


@pytest.mark.parametrize("run", [in_a_loop_of_its_own, on_the_thread_of_the_caller])
def test_an_execution_is_started_followed_and_awaited(
    run: Callable[[Callable[[], Coroutine[Any, Any, None]]], None], outbox: Outbox
) -> None:
    async def main() -> None:
        execution = await astart("SCAN", vendor_id=7, jobs=[copy.s(1)], open=True, close_after=60)
        assert type(execution) is TrackedExecution
        assert [await execution.aadd([copy.s(2)], once="page") for _ in range(2)] == [1, 0]
        assert await execution.aclose() is True
        assert (await execution.aprogress()).counts == {"Pending": 2}

        waiting = asyncio.create_task(execution.await_end(timeout=60))
        await asyncio.sleep(0.2)
        assert not waiting.done()
        await sync_to_async(ends)(execution, "Error")
        assert await waiting == "Error"

        assert await execution.aretry_failed() == 2
        assert execution.status == "Running"
        assert await execution.astop() == 0
        assert execution.status == "Stopped"
        assert await execution.aresume_stopped() == 2
        assert execution.status == "Running"

    run(main)
    assert len(outbox.messages) == 6


def test_refusals_and_timeouts_are_raised() -> None:
    async def main() -> None:
        with pytest.raises(Refused, match="takes from 1 to 2 positional arguments"):
            await astart("SCAN", jobs=[copy.s(1, 2, 3)])
        execution = await astart("SCAN", jobs=[copy.s(1)])
        with pytest.raises(StillRunning, match=r"Running after 0\.2 s"):
            await execution.await_end(timeout=0.2)

    async_to_sync(main)()


def test_many_wait_and_hold_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """While 200 tasks wait, the loop and its one thread for the database are free: nothing sleeps in either, and
    no thread was added."""
    without_sleep = SimpleNamespace(monotonic=time.monotonic)
    monkeypatch.setattr("harbor_refresh.tasks.jobs.execution.time", without_sleep)

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
