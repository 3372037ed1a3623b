"""PerProcess: an object that each process makes when it first needs it, and the child of a fork makes again.
BatchThread: such an object, a thread that works off what other threads put."""

import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar

from harbor_refresh.tasks.pipeline.own_connections import beside_the_pool

log = logging.getLogger("harbor_refresh")

#: The most items that a thread works off together, and the seconds in which it may end.
PAGE, STOP_SECONDS = 500, 5.0

T = TypeVar("T", bound=Any)  # it has a method `stop`
Item = TypeVar("Item")


class PerProcess(Generic[T]):
    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._pid = 0
        self._one: T | None = None

    def get(self) -> T:
        if self._one is not None and self._pid == os.getpid():  # without the lock, which a fork might copy
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


class BatchThread(Generic[Item]):
    """Does its work with what other threads put. The work raises nothing, and returns why some is left, which is
    logged once until none is."""

    def __init__(self, name: str, work: Callable[[Sequence[Item]], str]) -> None:
        self._do = work
        self._items: deque[Item] = deque()
        self._has_come = threading.Event()
        self._ending = False
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def put(self, items: Iterable[Item]) -> None:
        self._items.extend(items)
        self._has_come.set()

    def stop(self) -> None:
        self._ending = True
        self._has_come.set()
        self._thread.join(STOP_SECONDS)

    @beside_the_pool()
    def _work(self) -> None:
        left = ""
        while self._items or not self._ending:
            self._has_come.wait()
            self._has_come.clear()
            while self._items:
                items = [self._items.popleft() for _ in range(min(PAGE, len(self._items)))]
                before, left = left, self._do(items)
                if left and not before:
                    log.warning("%s", left)
