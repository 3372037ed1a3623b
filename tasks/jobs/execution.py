"""TrackedExecution: an execution with the operations on its jobs."""

import time
from typing import TYPE_CHECKING, Any

from executions import gates, progress
from executions.errors import NotCommitted, StillRunning
from executions.models import Execution
from executions.progress import Progress
from executions.status import is_final
from tasks.jobs.lifecycle import job_creation, kept_ends, retries
from tasks.jobs.lifecycle.job_stops import stop_jobs
from tasks.jobs.lifecycle.uncommitted import is_uncommitted, note
from tasks.jobs.signatures import chains_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from celery import group
    from celery.canvas import Signature

    from tasks.jobs.lifecycle.kept_ends import JobResult

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0


class TrackedExecution(Execution):
    """The row of an execution, with the operations on its jobs. Get it again by
    `TrackedExecution.objects.get(pk=…)`."""

    class Meta:
        proxy = True

    def progress(self) -> Progress:
        """Return its progress, by one indexed query."""
        return progress.progress(self.pk)

    def add(self, jobs: "Iterable[Signature[Any]] | Signature[Any] | group", *, once: str = "") -> int:
        """Add jobs, as `start` takes them; return how many. Raises ExecutionClosed if it was closed, and
        AlreadyFinal if it has ended.

        `once`: any text that names this addition within the execution. If it was made before, nothing is added and
        0 is returned. So a producer that does not know whether it died before or after the commit repeats it."""
        return job_creation.add(self.pk, chains_of(jobs), once=once)

    def close(self) -> bool:
        """Say that all jobs were added: it ends when they have ended. False if it was closed or stopped before, or
        was not started open."""
        is_closed = gates.close(self.pk)
        note(self.pk)
        return is_closed

    def wait(self, timeout: float | None = None) -> str:
        """Wait until it has ended, and return its status. Raises StillRunning (a TimeoutError) after the timeout.

        It reads its row, at first often, then every other second, so it depends on no message. Raises NotCommitted
        at once in the transaction that has started its jobs, tries them again or has closed it.
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

    def results(self) -> "Iterator[JobResult]":
        """Yield what its jobs have returned, in the order in which they were given: those that have succeeded and
        whose task says `keep_result=True`. It reads a page at a time."""
        return kept_ends.results(self.pk)

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
