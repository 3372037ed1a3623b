"""The reporter: one thread in each process that makes the reports of its jobs, many at once.

Redis also has these reports, so recovery sends them if this process dies.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Sequence

from django.db import connection

from executions.errors import RefreshError
from tasks.jobs.delivery.deliveries import deliver
from tasks.jobs.lifecycle.job_report import JobReport
from tasks.jobs.runtime.per_process import PerProcess

log = logging.getLogger("harbor_refresh")

#: Seconds that the reporter waits after a transaction while reports keep coming; longer after a larger batch. A
#: transaction, and the refresh that follows, cost as much as ten jobs that do nothing.
MOMENT, EACH, LONGEST = 0.1, 0.005, 1.0
TOGETHER = 500
#: Reports beyond this number are left to recovery.
MOST = 20_000
PAUSE = 1.0
STOP_SECONDS = 5.0


class Reporter:
    def __init__(self) -> None:
        self._reports: deque[JobReport] = deque(maxlen=MOST)
        self._come = threading.Event()
        self._ending = threading.Event()
        self._is_told = False
        self._thread = threading.Thread(target=self._run, name="reporter", daemon=True)
        self._thread.start()

    def put(self, report: JobReport) -> None:
        self._reports.append(report)
        self._come.set()

    def stop(self) -> None:
        """Stop after reporting what is left, within a few seconds."""
        self._ending.set()
        self._come.set()
        self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        """Report the first report after a pause at once, and together those that come meanwhile and a moment
        later."""
        while self._reports or not self._ending.is_set():
            self._come.wait()
            self._come.clear()
            while self._reports:
                batch = [self._reports.popleft() for _ in range(min(TOGETHER, len(self._reports)))]
                is_made = self._make(batch)
                if not is_made and self._ending.wait(PAUSE):
                    return
                if is_made:
                    self._wait_for_more(min(MOMENT + EACH * len(batch), LONGEST))
        connection.close()

    def _wait_for_more(self, seconds: float) -> None:
        """Wait while reports keep coming, until they fill a batch."""
        until, before = time.monotonic() + seconds, -1
        while before < len(self._reports) < TOGETHER and time.monotonic() < until:
            before = len(self._reports)
            if self._ending.wait(MOMENT):
                return

    def _make(self, batch: Sequence[JobReport]) -> bool:
        """Report a batch. False if some reports have to wait. Reports that the database refuses are left to
        recovery."""
        try:
            landed = deliver(batch)
        except RefreshError as exc:
            self._wait_with(batch, str(exc))
            self._reports.extendleft(reversed(batch))
            return False
        except Exception:
            log.error("%d turns of jobs cannot be reported; recovery will try", len(batch), exc_info=True)
            return True
        self._wait_with(landed.left, landed.why_left)
        self._reports.extend(landed.left)
        return not landed.left

    def _wait_with(self, left: Sequence[JobReport], why: str) -> None:
        """Log once that reports wait, until none waits any more."""
        if left and not self._is_told:
            log.warning("%d turns of jobs cannot be reported, trying again: %s", len(left), why)
        self._is_told = bool(left)


reporter = PerProcess(Reporter)


def put(report: JobReport) -> None:
    reporter.get().put(report)
