"""A job is a plain function. What `async def` and `yield` make of one runs only if something waits for it, and
nothing in a worker does."""

import inspect
from typing import Any

from executions.errors import Refused

ASYNC = "a job is a plain function; call asyncio.run() in it for what is asynchronous"
LAZY = "a job is a plain function; without `yield` it runs to its end"


def refuse_unplain(task: Any) -> None:
    """Refused, if a worker could only make it and not run it."""
    function = getattr(task, "_orig_run", task.run)  # behind autoretry_for
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise Refused(f"{task.name} is an `async def`: {ASYNC}")
    if inspect.isgeneratorfunction(function):
        raise Refused(f"{task.name} is a generator: {LAZY}")


def was_run(result: Any) -> Any:
    """The same; TypeError for a result that nothing has run yet."""
    if inspect.iscoroutine(result):
        result.close()
        raise TypeError(f"it returned a coroutine, which nothing runs: {ASYNC}")
    if inspect.isgenerator(result) or inspect.isasyncgen(result):
        raise TypeError(f"it returned a generator, which nothing runs: {LAZY}")
    return result
