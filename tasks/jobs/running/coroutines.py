"""Coroutines: how an `async def` job runs.

Each run has an event loop, in a thread beside that of the job. The thread of the job waits, and does what belongs
to it: asynchronous queries of Django use its connection, as asgiref arranges it. So they see the transaction of a
test in eager mode, and Celery's clean-up of connections holds for them.

Green threads share one thread, where a second loop fails, so their pools are refused.
"""

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine, Generator, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial, wraps
from inspect import getattr_static, iscoroutinefunction
from typing import Any, TypeVar

from asgiref.sync import AsyncToSync, async_to_sync
from billiard.exceptions import SoftTimeLimitExceeded
from billiard.pool import soft_timeout_sighandler
from celery._state import _task_stack  # type: ignore[attr-defined]  # celery-types does not know it
from kombu.utils.compat import detect_environment

Result = TypeVar("Result")

#: What calls functions in the thread of the job, while its coroutine runs.
_thread_of_the_job: ContextVar[Executor | None] = ContextVar("harbor_refresh_thread_of_the_job", default=None)


def make_plain(task: type[Any]) -> None:
    """Have the `run` of this class of tasks run its coroutine to the end, if it is one."""
    if iscoroutinefunction(task.run):
        run = plain(task.run)
        task.run = staticmethod(run) if isinstance(getattr_static(task, "run"), staticmethod) else run


def plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a plain function that does what this one does, which may be a coroutine function."""
    if not iscoroutinefunction(function):
        return function

    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        if (pool := detect_environment()) != "default":
            raise RuntimeError(f"an `async def` job runs in the pools prefork, threads and solo, not with {pool}")
        its = _Coroutine(function, args, kwargs)
        with its.soft_limit():
            try:
                return async_to_sync(its.main, force_new_loop=True)()
            except BaseException:
                its.cancel()  # if it still goes on: this thread was interrupted
                raise

    return run


def outside_of_the_loop(function: Callable[[], Result]) -> Result:
    """Call a plain function that uses the database. In an event loop, Django refuses that: then it is called in
    the thread of the job, and the loop waits."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return function()
    thread = _thread_of_the_job.get()
    return thread.submit(function).result() if thread else function()


class _Coroutine:
    """One run of a coroutine function. Celery keeps the current task and its request for each thread, so they are
    handed on to that of the loop."""

    def __init__(self, function: Callable[..., Any], args: Any, kwargs: Any) -> None:
        self._make = partial(function, *args, **kwargs)
        self._celery_task = _task_stack.top
        self._request = self._celery_task.request_stack.top if self._celery_task else None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None
        self._struck: SoftTimeLimitExceeded | None = None

    async def main(self) -> Any:
        # where `sync_to_async` looks for it
        _thread_of_the_job.set(getattr(AsyncToSync.executors, "current", None))
        self._task, self._loop = asyncio.current_task(), asyncio.get_running_loop()
        if self._struck:
            self.cancel()
        try:
            with self._as_current():
                return await _Interruptible(self._make(), self._take_limit)
        finally:
            self._loop = None

    @contextmanager
    def _as_current(self) -> Iterator[None]:
        task = self._celery_task
        if task is None:
            yield
            return
        _task_stack.push(task)
        task.request_stack.push(self._request)
        try:
            yield
        finally:
            task.request_stack.pop()
            _task_stack.pop()

    def cancel(self) -> None:
        loop, task = self._loop, self._task
        if loop and task:
            loop.call_soon_threadsafe(task.cancel)

    @contextmanager
    def soft_limit(self) -> Iterator[None]:
        """Raise a soft time limit in the coroutine, and not in this thread, where its signal arrives."""
        is_main = threading.current_thread() is threading.main_thread()
        if not is_main or signal.getsignal(signal.SIGUSR1) is not soft_timeout_sighandler:
            yield
            return
        signal.signal(signal.SIGUSR1, self._strike)
        try:
            yield
        finally:
            signal.signal(signal.SIGUSR1, soft_timeout_sighandler)

    def _strike(self, *_: Any) -> None:
        self._struck = SoftTimeLimitExceeded()
        self.cancel()

    def _take_limit(self) -> SoftTimeLimitExceeded | None:
        struck, self._struck = self._struck, None
        if struck and self._task:
            self._task.uncancel()
        return struck


class _Interruptible:
    """Awaits a coroutine. A cancellation that stands for something else is raised in it as that."""

    def __init__(self, made: Coroutine[Any, Any, Any], stands_for: Callable[[], BaseException | None]) -> None:
        self._made, self._stands_for = made, stands_for

    def __await__(self) -> Generator[Any, None, Any]:
        thrown: BaseException | None = None
        while True:
            try:
                waits_for = self._made.throw(thrown) if thrown else self._made.send(None)
            except StopIteration as end:
                return end.value
            thrown = None
            try:
                yield waits_for
            except asyncio.CancelledError as exc:
                thrown = self._stands_for() or exc
            except BaseException as exc:
                thrown = exc
