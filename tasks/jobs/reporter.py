"""The reporter: one thread in each process that makes the reports of its jobs, many at once.

What it holds is in Redis as well, so nothing is lost with it: whoever recovers reports it.
"""

import logging
import os
import threading
import time
from collections import deque
from typing import Any

from django.db import connection

from executions.errors import RefreshError
from executions.usecases.jobs import Turn, land

log = logging.getLogger("harbor_refresh")

#: Turns of so many seconds share a report.
MOMENT = 0.05
TOGETHER = 500
#: Beyond it the oldest are left to recovery.
MOST = 20_000
PAUSE = 1.0
STOP_SECONDS = 5.0


class Reporter:
    def __init__(self) -> None:
        self._turns: deque[Turn] = deque(maxlen=MOST)
        self._lock = threading.Lock()
        self._come = threading.Event()
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None
        self._pid = 0

    def put(self, turn: Turn) -> None:
        """The thread begins with the first turn; a child of a fork has one of its own."""
        with self._lock:
            if self._pid != os.getpid():
                self.__init__()  # type: ignore[misc]
                self._pid = os.getpid()
                self._thread = threading.Thread(target=self._run, name="reporter", daemon=True)
                self._thread.start()
        self._turns.append(turn)
        self._come.set()

    def stop(self) -> None:
        """Make what is left, within a few seconds."""
        thread = self._thread
        if thread and self._pid == os.getpid():
            self._ending.set()
            self._come.set()
            thread.join(STOP_SECONDS)

    def _run(self) -> None:
        told = False
        while not (self._ending.is_set() and not self._turns):
            self._come.wait()
            self._come.clear()
            if not self._ending.is_set():
                time.sleep(MOMENT)
            while self._turns:
                batch = [self._turns.popleft() for _ in range(min(TOGETHER, len(self._turns)))]
                try:
                    land(batch)
                    told = False
                except RefreshError as exc:
                    if not told:
                        log.warning("%d turns of jobs cannot be reported, trying again: %s", len(batch), exc)
                    told = True
                    self._turns.extendleft(reversed(batch))
                    if self._ending.wait(PAUSE):
                        return
                except Exception:
                    log.error("%d turns of jobs cannot be reported; recovery will try", len(batch), exc_info=True)
        connection.close()


reporter = Reporter()


def end(**_: Any) -> None:
    reporter.stop()
