"""The declaration of a job: JobTask, and what a task says, checked as far as Celery does not check it.

A function that no worker can run is refused where it is declared; arguments that the function does not take, at
`start`.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from celery import Task

from harbor_refresh.executions.errors import Refused
from harbor_refresh.tasks.jobs.starting.records import MAX_ATTEMPTS

LEAST_ATTEMPTS = 5
ASYNC = "write `await` where it is made"
LAZY = "a job is no generator; without `yield` it runs to its end"


class JobTask(Task):  # type: ignore[type-arg]
    """What a tracked job says of itself when it is started. tracked.py has how it runs, and describes these."""

    abstract = True
    unique = False
    keep_result = False
    concurrency: int | None = None
    rate: str | None = None
    key: Callable[[Any], Any] | None = None
    #: Whether arguments are checked against the function: what Celery's `typing` says, which counts no handle.
    checks_arguments = False

    @property
    def max_attempts(self) -> int:
        of_autoretry = getattr(self, "retry_kwargs", None) or {}
        retries = max(_number(self.max_retries), _number(of_autoretry.get("max_retries")))
        return int(min(max(LEAST_ATTEMPTS, retries + 1), MAX_ATTEMPTS))


def refuse_generator(name: str, function: Any) -> None:
    """Raise Refused if the function is a generator function: a worker would run none of its code."""
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise Refused(f"{name} is a generator: {LAZY}")


def checked_result(result: Any) -> Any:
    """Return the result. Raises TypeError if it is a coroutine or a generator, because no code has run yet."""
    if inspect.iscoroutine(result):
        result.close()
        raise TypeError(f"it returned a coroutine, which nothing runs: {ASYNC}")
    if inspect.isgenerator(result) or inspect.isasyncgen(result):
        raise TypeError(f"it returned a generator, which nothing runs: {LAZY}")
    return result


def refuse_arguments(task: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Raise TypeError if the function does not take these arguments after the handle. It is Celery's own check, so
    `typing=False` on the task, and `strict_typing=False` on the app, switch it off."""
    if task.checks_arguments and (check := getattr(task, "__header__", None)):
        check(None, *args, **kwargs)


def _number(value: Any) -> float:
    return value if isinstance(value, int | float) else 0
