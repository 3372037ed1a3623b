"""TrackedExecution: an execution with the operations on its jobs."""

import time

from executions import progress
from executions.errors import NotCommitted, StillRunning
from executions.models import Execution
from executions.progress import Progress
from executions.status import is_final
from tasks.jobs.lifecycle import retries
from tasks.jobs.lifecycle.job_stops import stop_jobs
from tasks.jobs.lifecycle.uncommitted import is_uncommitted

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0


class TrackedExecution(Execution):
    """The row of an execution, with the operations on its jobs. Get it again by
    `TrackedExecution.objects.get(pk=…)`."""

    class Meta:
        proxy = True

    def progress(self) -> Progress:
        """Return its progress, by one indexed query."""
        return progress.progress(self.pk)

    def wait(self, timeout: float | None = None) -> str:
        """Wait until it has ended, and return its status. Raises StillRunning (a TimeoutError) after the timeout.

        It reads its row, at first often, then every other second, so it depends on no message. Raises NotCommitted
        at once in the transaction that has started its jobs or tries them again.
        """
        if is_uncommitted(self.pk):
            raise NotCommitted
        deadline = None if timeout is None else time.monotonic() + timeout
        pause = FIRST_PAUSE
        while True:
            self.refresh_from_db()
            if is_final(self.status):
                return self.status
            left = pause if deadline is None else deadline - time.monotonic()
            if left <= 0:
                raise StillRunning(f"{self} is {self.status} after {timeout:g} s")
            time.sleep(min(pause, left))
            pause = min(pause * 1.5, LONGEST_PAUSE)

    def stop(self) -> int:
        """Stop waiting jobs, and ask running jobs to stop. It has ended when this returns: as Error if a job had
        failed before, else as Stopped; one that had ended keeps its status. Returns how many jobs were asked."""
        running = stop_jobs(self.pk)
        self.refresh_from_db()
        return running

    def retry_failed(self) -> int:
        """Run failed jobs once more, and the jobs after them in their chains. It is Running when this returns.
        Returns how many jobs; 0 if no job had failed, and then the execution is unchanged."""
        again = retries.retry_failed(self.pk)
        self.refresh_from_db()
        return again

    def resume_stopped(self) -> int:
        """Run stopped jobs once more, in a new revision. It is Running when this returns. Returns how many jobs; 0
        if none was stopped, and then the execution is unchanged."""
        again = retries.resume_stopped(self.pk)
        self.refresh_from_db()
        return again
