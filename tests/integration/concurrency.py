"""Functions that run at the same moment, each with its own database connection, and waits that end."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import psycopg
from django.db import connection, transaction

from harbor_refresh.executions.lifecycle import crash_points
from tests import servers
from tests.integration.database_state import waiting_for_locks
from tests.waiting import wait_for

DEADLINE_SECONDS = 120


def at_once(*functions: Callable[[], Any]) -> list[Any]:
    """Run them in threads of their own, each with its own database connection; raise what they raise."""
    with ThreadPoolExecutor(len(functions)) as pool:
        futures = [pool.submit(_and_close, function) for function in functions]
        return [future.result(timeout=300) for future in futures]


def _and_close(function: Callable[[], Any]) -> Any:
    try:
        return function()
    finally:
        connection.close()


@contextmanager
def in_background(function: Callable[[], Any]) -> Iterator[Callable[[], Any]]:
    """Run it in a thread; the value is how to wait for its result."""
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(_and_close, function)
        yield lambda: future.result(timeout=300)


@contextmanager
def transaction_held_open(function: Callable[[], Any]) -> Iterator[Callable[[], Any]]:
    """It has done its work in a transaction that is still open. The value commits, and returns the result."""
    done, go_on = threading.Event(), threading.Event()

    def work() -> Any:
        with transaction.atomic():
            result = function()
            done.set()
            assert go_on.wait(DEADLINE_SECONDS)
        return result

    with in_background(work) as finish:
        assert done.wait(DEADLINE_SECONDS)

        def commit() -> Any:
            go_on.set()
            return finish()

        try:
            yield commit
        finally:
            go_on.set()


@contextmanager
def statement_held_open(statement: str, values: Sequence[Any] = ()) -> Iterator[psycopg.Connection]:
    """Another session that has run this, and holds its locks until it or the block ends."""
    with psycopg.connect(servers.postgres.url_for(connection.settings_dict["NAME"])) as other:
        other.execute(statement.encode(), values)
        yield other


def wait_until(condition: Callable[[], Any], what: str) -> None:
    wait_for(condition, what, seconds=DEADLINE_SECONDS)


def one_after_the_other(first: Callable[[], Any], second: Callable[[], Any]) -> tuple[Any, Any]:
    """Do the second, which waits for a lock of the first: that has done its work and not committed. Returns what
    both return; raises what they raise."""
    with transaction_held_open(first) as commit, in_background(second) as finish:
        wait_until(lambda: waiting_for_locks() == 1, "the second to wait for the first")
        return commit(), finish()


class Pause:
    """Holds the first thread that reaches a point until it may go on."""

    def __init__(self, point: str) -> None:
        self._point = point
        self.reached = threading.Event()
        self.go_on = threading.Event()

    def __call__(self, point: str, execution_ids: Any) -> None:
        if point == self._point and not self.reached.is_set():
            self.reached.set()
            assert self.go_on.wait(DEADLINE_SECONDS)

    def wait_until_reached(self) -> None:
        assert self.reached.wait(DEADLINE_SECONDS), f"no thread has reached {self._point}"

    def __enter__(self) -> "Pause":
        crash_points.handlers.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        crash_points.handlers.remove(self)
        self.go_on.set()
