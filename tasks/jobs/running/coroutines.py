"""Coroutines: how an `async def` job runs.

Each run has an event loop, in a thread beside that of the job. The thread of the job waits, and does what belongs
to it: asynchronous queries of Django use its connection, as asgiref arranges it. So they see the transaction of a
test in eager mode, and Celery's clean-up of connections holds for them.

Green threads share one thread, where a second loop fails, so their pools are refused.
"""

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine
from functools import wraps
from inspect import getattr_static, iscoroutinefunction
from typing import Any, TypeVar

from asgiref.sync import AsyncToSync, async_to_sync
from billiard.exceptions import SoftTimeLimitExceeded
from billiard.pool import soft_timeout_sighandler
from celery._state import _task_stack  # type: ignore[attr-defined]  # celery-types does not know it
from kombu.utils.compat import detect_environment

Result = TypeVar("Result")


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
        if _is_in_a_loop():  # the coroutine of a subclass awaits it by `super().run(…)`
            return function(*args, **kwargs)
        if (pool := detect_environment()) != "default":
            raise RuntimeError(f"an `async def` job runs in the pools prefork, threads and solo, not with {pool}")
        its = _Coroutine(function(*args, **kwargs))
        is_main = threading.current_thread() is threading.main_thread()
        has_limit = is_main and signal.getsignal(signal.SIGUSR1) is soft_timeout_sighandler
        if has_limit:  # its signal arrives in this thread, and cancels the coroutine
            signal.signal(signal.SIGUSR1, its.strike)
        try:
            return async_to_sync(its.main, force_new_loop=True)()
        except BaseException:
            its.cancel()  # if it still goes on: this thread was interrupted
            raise
        finally:
            if has_limit:
                signal.signal(signal.SIGUSR1, soft_timeout_sighandler)

    return run


def outside_of_the_loop(function: Callable[[], Result]) -> Result:
    """Call a plain function that uses the database. In an event loop, Django refuses that: then it is called in
    the thread of the job, and the loop waits."""
    if not _is_in_a_loop():
        return function()
    thread = getattr(AsyncToSync.executors, "current", None)  # where `sync_to_async` looks for it
    return thread.submit(function).result() if thread else function()


def _is_in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class _Coroutine:
    """One run of a coroutine. Celery keeps the current task and its request for each thread, so they are handed on
    to that of the loop."""

    def __init__(self, made: Coroutine[Any, Any, Any]) -> None:
        self._made = made
        self._celery_task = _task_stack.top
        self._request = self._celery_task.request_stack.top if self._celery_task else None
        self._task: asyncio.Task[Any] | None = None
        self._is_struck = False

    async def main(self) -> Any:
        self._task = asyncio.current_task()
        if self._is_struck:
            self.cancel()
        if task := self._celery_task:
            _task_stack.push(task)
            task.request_stack.push(self._request)
        try:
            return await self._made
        except asyncio.CancelledError as exc:
            if self._is_struck:
                raise SoftTimeLimitExceeded().with_traceback(exc.__traceback__) from None
            raise
        finally:
            self._task = None
            if task:
                task.request_stack.pop()
                _task_stack.pop()

    def cancel(self) -> None:
        if task := self._task:
            task.get_loop().call_soon_threadsafe(task.cancel)

    def strike(self, *_: Any) -> None:
        self._is_struck = True
        self.cancel()
