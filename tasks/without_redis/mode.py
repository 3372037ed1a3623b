"""Whether this process runs without Redis: in Celery's eager mode, or beside a worker that a test has started in a
thread of its own."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from celery import current_app

_workers_of_tests = 0
_decided: bool | None = None


def is_on() -> bool:
    """Whether jobs are recorded in PostgreSQL alone, and executions refreshed by the process that changes them."""
    return _workers_of_tests > 0 or is_eager()


def is_eager() -> bool:
    """Whether each job runs at once in the process that starts it. Celery calls it `task_always_eager`."""
    return bool(current_app.conf.task_always_eager) if _decided is None else _decided


def decide(**_: Any) -> None:
    """Read the setting once in a worker, which asks several times for each job. Tests set and unset it."""
    global _decided  # noqa: PLW0603
    _decided = is_eager()


@contextmanager
def with_a_worker_in_this_process() -> Iterator[None]:
    """All messages of jobs stay in this process meanwhile: its broker is kombu's transport in memory."""
    global _workers_of_tests  # noqa: PLW0603
    _workers_of_tests += 1
    try:
        yield
    finally:
        _workers_of_tests -= 1
