"""PerProcess: an object that each process makes when it first needs it, and the child of a fork makes again."""

import os
import threading
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar


class Stoppable(Protocol):
    def stop(self) -> None: ...


T = TypeVar("T", bound=Stoppable)


class PerProcess(Generic[T]):
    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._pid = 0
        self._one: T | None = None

    def get(self) -> T:
        if self._one is not None and self._pid == os.getpid():
            return self._one
        with self._lock:
            if self._one is None or self._pid != os.getpid():
                self._one, self._pid = self._make(), os.getpid()
            return self._one

    def stop(self, **_: Any) -> None:
        """Stop the object of this process, if there is one. The next worker in this process makes another."""
        with self._lock:
            one, self._one = self._one, None
        if one and self._pid == os.getpid():
            one.stop()
