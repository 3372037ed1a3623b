"""The execution of tracked jobs, as the code that has started it sees it."""

import time

from executions.errors import NotCommitted, StillRunning
from executions.models import Execution
from executions.status import is_final
from tasks.jobs.lifecycle import retries
from tasks.jobs.lifecycle.job_stops import stop_jobs
from tasks.jobs.lifecycle.uncommitted import is_uncommitted
from tasks.jobs.overview import progress
from tasks.jobs.overview.progress import Progress

FIRST_LOOK, LAST_LOOK = 0.05, 2.0


class TrackedExecution(Execution):
    """The same row, and what can be done with its jobs. Found again by `TrackedExecution.objects.get(pk=…)`."""

    class Meta:
        proxy = True

    def progress(self) -> Progress:
        """How far it is: one indexed query."""
        return progress.progress(self.pk)

    def wait(self, timeout: float | None = None) -> str:
        """Until it has ended; its status then. StillRunning (a TimeoutError) if it takes longer than that.

        It looks at its row, at first often, then every other second. No message has to come for it to end.
        NotCommitted, at once, in the transaction that has started its jobs or tries them again.
        """
        if is_uncommitted(self.pk):
            raise NotCommitted
        deadline = None if timeout is None else time.monotonic() + timeout
        pause = FIRST_LOOK
        while True:
            self.refresh_from_db()
            if is_final(self.status):
                return self.status
            left = pause if deadline is None else deadline - time.monotonic()
            if left <= 0:
                raise StillRunning(f"{self} is {self.status} after {timeout:g} s")
            time.sleep(min(pause, left))
            pause = min(pause * 1.5, LAST_LOOK)

    def stop(self) -> int:
        """End what waits, ask what runs to end; it is Stopped when this returns. How many were asked."""
        running = stop_jobs(self.pk)
        self.refresh_from_db()
        return running

    def retry_failed(self) -> int:
        """Run once more what failed, and what was stopped for it in a chain; it is Running when this returns. How
        many: if there are none, nothing has changed."""
        again = retries.retry_failed(self.pk)
        self.refresh_from_db()
        return again
