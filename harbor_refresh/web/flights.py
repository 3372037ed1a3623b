"""Flights: questions to servers that may hang. A caller waits for a bounded time, and the question goes on in a
thread of its own.

A PostgreSQL process that is stopped keeps its connections and never answers, and no timeout of the client ends
that. While a question is open it is not asked again: further callers wait for the same answer. So a server that
hangs holds one thread and one connection of this process for each question, however many callers there are.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from time import monotonic
from typing import Generic, TypeVar

from django.db import connection

T = TypeVar("T")
#: How long an answer is waited for. No limit of its client ends a question to a PostgreSQL that is stopped.
SECONDS = 3.0


class Flight(Generic[T]):
    """One question. `ask` answers it in a thread, which opens a database connection of its own and closes it.
    `late` says what counts while no answer has come in time. `fresh`: for so many seconds its answer is that of
    further callers."""

    def __init__(self, ask: Callable[[], T], late: Callable[[], T], *, fresh: float = 0.0) -> None:
        self._ask = ask
        self._late = late
        self._fresh = fresh
        self._lock = threading.Lock()
        self._open: Future[T] | None = None
        self._asked_at = self._answered_at = 0.0

    def answer(self) -> T:
        """Return the answer, or raise the error of `ask`; or return `late`, if neither is there SECONDS after the
        question, which another caller may have asked."""
        with self._lock:
            now = monotonic()
            if self._open is None or self._is_old(self._open, now):
                asked: Future[T] = Future()
                threading.Thread(target=self._fly, args=(asked,), name="flight", daemon=True).start()
                self._open, self._asked_at = asked, now  # not before: a thread may be refused
            answer, left = self._open, self._asked_at + SECONDS - now
        try:
            return answer.result(max(0.0, left))
        except TimeoutError:  # of `ask`, or of the wait, which may end just before the answer comes
            return answer.result() if answer.done() else self._late()

    def _is_old(self, answer: "Future[T]", now: float) -> bool:
        return answer.done() and (answer.exception() is not None or now - self._answered_at >= self._fresh)

    def _fly(self, answer: "Future[T]") -> None:
        try:
            found = self._ask()
            self._answered_at = monotonic()
            answer.set_result(found)
        except BaseException as exc:
            answer.set_exception(exc)
        finally:
            connection.close()
