"""The reporter: one thread in each process that delivers the reports of its jobs, many at once.

Redis also has these reports, so recovery sends them if this process dies.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Sequence

from django.db import connection

from harbor_refresh.executions.errors import RefreshError
from harbor_refresh.tasks.jobs.delivery.followers import deliver_and_publish
from harbor_refresh.tasks.jobs.lifecycle.job_report import JobReport
from harbor_refresh.tasks.jobs.runtime.per_process import PerProcess
from harbor_refresh.tasks.without_redis import mode

log = logging.getLogger("harbor_refresh")

#: Seconds that the reporter waits after a transaction while reports keep coming; longer after a larger batch. A
#: transaction, and the refresh that follows, cost as much as ten jobs that do nothing.
MOMENT, EACH, LONGEST = 0.1, 0.005, 1.0
#: The most reports in one transaction.
TOGETHER = 500
#: The most reports that wait; further ones are left to recovery.
MOST = 20_000
PAUSE = 1.0
STOP_SECONDS = 5.0


class Reporter:
    def __init__(self) -> None:
        self._reports: deque[JobReport] = deque(maxlen=MOST)
        self._has_come = threading.Event()
        self._ending = threading.Event()
        self._is_logged = False
        self._thread = threading.Thread(target=self._run, name="reporter", daemon=True)
        self._thread.start()

    def put(self, report: JobReport) -> None:
        self._reports.append(report)
        self._has_come.set()

    def stop(self) -> None:
        """Deliver the remaining reports, within a few seconds, and stop."""
        self._ending.set()
        self._has_come.set()
        self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        """Deliver the first report after a pause at once, and then together those that come meanwhile and a moment
        later."""
        while self._reports or not self._ending.is_set():
            self._has_come.wait()
            self._has_come.clear()
            while self._reports:
                batch = [self._reports.popleft() for _ in range(min(TOGETHER, len(self._reports)))]
                is_done = self._deliver(batch)
                if not is_done and self._ending.wait(PAUSE):
                    return
                if is_done:
                    self._wait_for_more(min(MOMENT + EACH * len(batch), LONGEST))
        connection.close()

    def _wait_for_more(self, seconds: float) -> None:
        """Wait while reports keep coming, until they fill a batch."""
        until, before = time.monotonic() + seconds, -1
        while before < len(self._reports) < TOGETHER and time.monotonic() < until:
            before = len(self._reports)
            if self._ending.wait(MOMENT):
                return

    def _deliver(self, batch: Sequence[JobReport]) -> bool:
        """Deliver a batch. False if some reports have to wait. Reports that the database refuses are left to
        recovery."""
        try:
            delivered = deliver_and_publish(batch)
        except RefreshError as exc:
            self._log_waiting(batch, str(exc))
            self._reports.extendleft(reversed(batch))
            return False
        except Exception:
            log.error("%d turns of jobs cannot be reported; recovery will try", len(batch), exc_info=True)
            return True
        self._log_waiting(delivered.left, delivered.why_left)
        self._reports.extend(delivered.left)
        return not delivered.left

    def _log_waiting(self, left: Sequence[JobReport], why: str) -> None:
        """Log that reports wait, once until none waits any more."""
        if left and not self._is_logged:
            log.warning("%d turns of jobs cannot be reported, trying again: %s", len(left), why)
        self._is_logged = bool(left)


of_this_process = PerProcess(Reporter)


def put(report: JobReport) -> None:
    if mode.is_on():
        deliver_and_publish([report])
    else:
        of_this_process.get().put(report)
