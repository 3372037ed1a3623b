"""The declaration of a job: JobTask, and what a task says, checked as far as Celery does not check it.

A function that no worker can run is refused where it is declared; retries that the attempts cannot hold, and
arguments that the function does not take, at `start`.
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
        retries = _retries_of(self)
        return LEAST_ATTEMPTS if retries is None else int(min(max(LEAST_ATTEMPTS, retries + 1), MAX_ATTEMPTS))


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


def refuse_contradiction(task: Any) -> None:
    """Raise Refused if the task asks for more retries than it may begin. The three retries that each task of
    Celery has by default are no such wish."""
    retries = _retries_of(task)
    has_attempts = not isinstance(inspect.getattr_static(task, "max_attempts"), property)
    if retries is None and not has_attempts:
        raise Refused(
            f"{task.name}: max_retries=None sets no limit, so a job that kills its worker would run for ever: "
            "set max_attempts as well"
        )
    if retries is not None and has_attempts and _asks_for_retries(task) and task.max_attempts <= retries:
        raise Refused(
            f"{task.name}: max_retries={retries:g} takes max_attempts={retries + 1:g} or more, "
            f"and got {task.max_attempts}"
        )


def refuse_arguments(task: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Raise TypeError if the function does not take these arguments after the handle. It is Celery's own check, so
    `typing=False` on the task, and `strict_typing=False` on the app, switch it off."""
    if task.checks_arguments and (check := getattr(task, "__header__", None)):
        check(None, *args, **kwargs)


def _retries_of(task: Any) -> float | None:
    """Return how many retries the task asks for, by itself or for autoretry_for; None for any number."""
    if task.max_retries is None:
        return None
    return max(_number(task.max_retries), _number(_of_autoretry(task).get("max_retries")))


def _asks_for_retries(task: Any) -> bool:
    says = next(one for one in (type(task).__mro__) if "max_retries" in vars(one))
    return says is not Task or "max_retries" in vars(task) or "max_retries" in _of_autoretry(task)


def _of_autoretry(task: Any) -> Mapping[str, Any]:
    return getattr(task, "retry_kwargs", None) or {}


def _number(value: Any) -> float:
    return value if isinstance(value, int | float) else 0
