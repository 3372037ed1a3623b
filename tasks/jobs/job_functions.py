"""The functions of jobs: each is a plain function. A worker runs neither the coroutine of an `async def` nor a
generator, so both are refused."""

import inspect
from typing import Any

from executions.errors import Refused

ASYNC = "a job is a plain function; call asyncio.run() in it for what is asynchronous"
LAZY = "a job is a plain function; without `yield` it runs to its end"


def refuse_unplain(task: Any) -> None:
    """Raise Refused if the function of the task is a coroutine function or a generator function."""
    function = getattr(task, "_orig_run", task.run)  # autoretry_for wraps the function
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise Refused(f"{task.name} is an `async def`: {ASYNC}")
    if inspect.isgeneratorfunction(function):
        raise Refused(f"{task.name} is a generator: {LAZY}")


def checked_result(result: Any) -> Any:
    """Return the result. Raises TypeError if it is a coroutine or a generator, because no code has run yet."""
    if inspect.iscoroutine(result):
        result.close()
        raise TypeError(f"it returned a coroutine, which nothing runs: {ASYNC}")
    if inspect.isgenerator(result) or inspect.isasyncgen(result):
        raise TypeError(f"it returned a generator, which nothing runs: {LAZY}")
    return result
