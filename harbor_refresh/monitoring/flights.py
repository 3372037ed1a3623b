"""Flights: questions to servers that may hang. A caller waits for a bounded time, and the question goes on in a
thread of its own.

A PostgreSQL process that is stopped keeps its connections and never answers, and no timeout of the client ends
that. While a question is open it is not asked again: further callers wait for the same answer. So a server that
hangs holds one thread and one connection of this process for each question, however many callers there are.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

from django.db import connection

T = TypeVar("T")


class Late(Exception):
    """The answer has not come in time."""


class Flight(Generic[T]):
    """One question. `ask` answers it in a thread, which opens a database connection of its own and closes it."""

    def __init__(self, ask: Callable[[], T]) -> None:
        self._ask = ask
        self._lock = threading.Lock()
        self._open: Future[T] | None = None

    def answer(self, seconds: float) -> T:
        """Return the answer, or raise the error of `ask`. Raises Late if neither comes in time."""
        with self._lock:
            if self._open is None or self._open.done():
                self._open = Future()
                threading.Thread(target=self._fly, args=(self._open,), name="flight", daemon=True).start()
            answer = self._open
        try:
            return answer.result(seconds)
        except TimeoutError:
            if answer.done():
                raise
            raise Late from None

    def _fly(self, answer: "Future[T]") -> None:
        try:
            answer.set_result(self._ask())
        except BaseException as exc:
            answer.set_exception(exc)
        finally:
            connection.close()
