"""Steady traffic of single reports, and a watch over the locks that backends wait for, each in a thread."""

import random
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

from django.db import Error, connection

from harbor_refresh.executions.lifecycle.reports import Report, report

POLL_SECONDS = 0.005
#: The longest that a backend has waited for a lock so far, and whether one waits.
LONGEST_WAIT = """
SELECT coalesce(extract(epoch FROM max(clock_timestamp() - l.waitstart)), 0)
FROM pg_locks l
JOIN pg_stat_activity a ON a.pid = l.pid
WHERE NOT l.granted AND a.datname = current_database()
"""


class Traffic:
    """Reports of tasks that stay (`running`), and late repetitions of the end of tasks that may be deleted at this
    moment (`late` returns one), each at `rate` a second. `seconds` has the duration of each call, by these two
    names."""

    def __init__(self, running: Sequence[int], late: Callable[[], int], rate: float) -> None:
        self.seconds: dict[str, list[float]] = {"running": [], "late": []}
        self.longest_wait = 0.0
        self.errors: list[str] = []
        dice = random.Random(1)  # noqa: S311
        self._next = {"running": lambda: dice.choice(running), "late": late}
        self._rate = rate
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=self._guarded, args=(work,), daemon=True)
            for work in (lambda: self._report("running"), lambda: self._report("late"), self._watch)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as exc:  # every error is a result of the experiment
            self.errors.append(f"{type(exc).__name__}: {exc}".strip())
        finally:
            with suppress(Error):
                connection.close()

    def _report(self, name: str) -> None:
        """Report until the end. A moment that has passed by more than a second is not made up for."""
        revision = 1
        due = time.monotonic()
        while not self._over.wait(max(0.0, due - time.monotonic())):
            due = max(due + 1 / self._rate, time.monotonic() - 1)
            revision += 1
            task = self._next[name]()
            one = Report(task, "Running", revision) if name == "running" else Report(task, "Success", 1)
            began = time.perf_counter()
            report([one])
            self.seconds[name].append(time.perf_counter() - began)

    def _watch(self) -> None:
        while not self._over.wait(POLL_SECONDS):
            with connection.cursor() as cursor:
                cursor.execute(LONGEST_WAIT)
                self.longest_wait = max(self.longest_wait, float(cursor.fetchone()[0]))
