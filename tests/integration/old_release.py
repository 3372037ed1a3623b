"""Programs of an old release, which mark executions with Harbor's keys; and witnesses that no mark is lost."""

import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager

from harbor_refresh.tasks.queue.keys import HARBORS_KEY
from tests.integration.redis_state import PREFIX, new_client

SECOND = 1_000_000
VENDOR = "A"


def key_of(number: int) -> str:
    return HARBORS_KEY % (number, VENDOR)


@contextmanager
def _in_a_thread(work: Callable[[], None], is_over: threading.Event) -> Iterator[None]:
    """Run it beside the block, and raise what it raised."""
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(work)
        try:
            yield
        finally:
            is_over.set()
        future.result(timeout=60)


class Writers:
    """Mark executions again and again, and note when each was marked last."""

    def __init__(self, executions: int, seed: int) -> None:
        print(f"seed {seed}")  # noqa: T201  # shown if the test fails
        self.marked: dict[int, int] = {}
        self.writes = 0
        self._count = executions
        self._chance = random.Random(seed)
        self._is_over = threading.Event()

    def at_work(self) -> AbstractContextManager[None]:
        return _in_a_thread(self._write, self._is_over)

    def _write(self) -> None:
        """In one transaction, so that the moment is that of the marks by Redis's own clock."""
        with new_client() as client:
            while not self._is_over.is_set():
                ids = self._chance.sample(range(1, self._count + 1), 100)
                with client.pipeline(transaction=True) as pipe:
                    pipe.time()
                    pipe.mset({key_of(number): "" for number in ids})
                    (seconds, microseconds), _ = pipe.execute()
                for number in ids:
                    self.marked[number] = seconds * SECOND + microseconds
                self.writes += len(ids)


class Witness:
    """Looks at some executions again and again, each time at one moment: each must be in exactly one place.

    The places are Harbor's key, the queue, and the claim that it may be in (`suffixes`).
    """

    def __init__(self, executions: int, suffixes: list[str], *, may_be_in_two: bool = False) -> None:
        self.looks = 0
        self.wrong: list[tuple[int, list[int]]] = []
        self._ids = random.sample(range(1, executions + 1), min(executions, 200))
        self._suffixes = suffixes
        self._may_be_in_two = may_be_in_two
        self._is_over = threading.Event()

    def at_work(self) -> AbstractContextManager[None]:
        return _in_a_thread(self._watch, self._is_over)

    def _watch(self) -> None:
        with new_client() as client:
            while not self._is_over.is_set():
                with client.pipeline(transaction=True) as pipe:
                    for number in self._ids:
                        member = f"{number}:{VENDOR}"
                        pipe.exists(key_of(number))
                        pipe.sismember(f"{PREFIX}queue:v2", member)
                        for suffix in self._suffixes:
                            pipe.sismember(f"{PREFIX}processing", f"{member}:{suffix}")
                    flat = [int(one) for one in pipe.execute()]
                size = 2 + len(self._suffixes)
                for place, number in enumerate(self._ids):
                    found = flat[place * size : (place + 1) * size]
                    if not sum(found) or (sum(found) > 1 and not self._may_be_in_two):
                        self.wrong.append((number, found))
                self.looks += 1
