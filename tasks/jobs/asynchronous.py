"""Twins for asynchronous code, named as Django names them: `astart` for `start`."""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from asgiref.sync import sync_to_async

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def asynchronous(function: Callable[Parameters, Result]) -> Callable[Parameters, Coroutine[Any, Any, Result]]:
    """Return a coroutine function that calls this one in the thread of Django's database connection.

    What if it is cancelled: the caller goes on at once, and the thread ends the call, so it may be committed.
    """

    @wraps(function)
    async def twin(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        return await sync_to_async(function)(*args, **kwargs)

    twin.__name__ = f"a{function.__name__}"
    twin.__qualname__ = twin.__name__.join(function.__qualname__.rsplit(function.__name__, 1))
    return twin
