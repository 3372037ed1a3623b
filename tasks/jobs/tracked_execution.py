"""TrackedExecution: an execution with the operations on its jobs."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from asgiref.sync import sync_to_async
from django.core.exceptions import ObjectDoesNotExist
from django.db import connection

from harbor_refresh.executions.errors import NoSuchExecution, NotCommitted, StillRunning
from harbor_refresh.executions.lifecycle import gates
from harbor_refresh.executions.models import Execution
from harbor_refresh.executions.queries import progress as of_tasks
from harbor_refresh.executions.queries.progress import Progress
from harbor_refresh.executions.status import is_final
from harbor_refresh.tasks.jobs import again
from harbor_refresh.tasks.jobs.running import kept_ends as kept
from harbor_refresh.tasks.jobs.running.kept_ends import JobResult
from harbor_refresh.tasks.jobs.starting import job_rows
from harbor_refresh.tasks.jobs.starting.canvas import Given, parts_of
from harbor_refresh.tasks.jobs.starting.fairness import turns_of
from harbor_refresh.tasks.jobs.stops import stop_jobs
from harbor_refresh.tasks.without_redis import agenda, mode

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0


def asynchronous(function: Callable[Parameters, Result]) -> Callable[Parameters, Coroutine[Any, Any, Result]]:
    """Return a coroutine function that calls this one in the thread of Django's database connection. If it is
    cancelled, the caller goes on at once, and the thread ends the call, so it may be committed."""

    @wraps(function)
    async def twin(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        return await sync_to_async(function)(*args, **kwargs)

    return twin


class TrackedExecution(Execution):
    """The row of an execution, with the operations on its jobs.

    Get it again with `TrackedExecution.objects.get(pk=…)`. If the row was deleted, or its transaction was rolled
    back, each operation raises NoSuchExecution. Each operation has an asynchronous twin: `aprogress`, `aadd`,
    `aclose`, `astop`, `aretry_failed` and `aresume_stopped`.
    """

    is_new = False
    """Whether this call of `start` created the execution. False: `once` found it."""

    class Meta:
        proxy = True

    def refresh_from_db(self, *args: Any, **options: Any) -> None:
        try:
            super().refresh_from_db(*args, **options)
        except ObjectDoesNotExist:
            raise NoSuchExecution(self.pk) from None

    def progress(self, *, deep: bool = False) -> Progress:
        """Return its progress, by one indexed query. A child execution counts as one task.

        Args:
            deep: Whether to count the jobs of child executions, at any depth, instead of the children. This query
                reads each job.
        """
        return of_tasks.progress(self.pk, deep=deep)

    def add(self, jobs: Given, *, once: str = "", weight: float = 1) -> int:
        """Add jobs, and return how many. Raises ExecutionClosed after `close()`, and AlreadyFinal after the end.

        Args:
            jobs: The same as for `start`.
            once: A name of this addition within the execution. If an addition already has this name, nothing is
                added and 0 is returned. So a producer that was killed can repeat its last addition.
            weight: The weight of these jobs.
        """
        return job_rows.add(self.pk, parts_of(jobs), once=once, turns=turns_of(weight, None))

    def close(self) -> bool:
        """Close an open execution, so that it ends when its jobs have ended. Return False if it was closed or
        stopped before, or was not started open."""
        return agenda.at_once(gates.close)(self.pk)

    def wait(self, timeout: float | None = None) -> str:
        """Wait until it has ended, and return its status. Raises StillRunning (a TimeoutError) after the timeout.

        It polls the row, at least every two seconds, so it depends on no message. Within an open transaction it
        raises NotCommitted, because jobs begin after the commit. In eager mode nothing else could end the
        execution, so StillRunning is raised at once.
        """
        pauses = self._pauses(timeout)
        while not self._has_ended():
            time.sleep(next(pauses))
        return self.status

    async def await_end(self, timeout: float | None = None) -> str:
        """Wait as `wait` does, without holding a thread. If the wait is cancelled, the execution continues."""
        pauses = self._pauses(timeout)
        while not await asynchronous(self._has_ended)():
            await asyncio.sleep(next(pauses))
        return self.status

    def _has_ended(self) -> bool:
        if mode.is_eager():
            agenda.work_off()
        self.refresh_from_db()
        if not is_final(self.status) and connection.in_atomic_block and not mode.is_eager():
            raise NotCommitted
        return is_final(self.status)

    def _pauses(self, timeout: float | None) -> Iterator[float]:
        """Yield how long to wait before each look but the first. Raises StillRunning when the time is over."""
        deadline = None if timeout is None else time.monotonic() + timeout
        pause = FIRST_PAUSE
        while not mode.is_eager():
            left = pause if deadline is None else deadline - time.monotonic()
            if left <= 0:
                raise StillRunning(
                    f"{self} is {self.status} after {timeout:g} s; see: manage.py harbor why {self.pk}"
                )
            yield min(pause, left)
            pause = min(pause * 1.5, LONGEST_PAUSE)
        raise StillRunning(f"{self} is {self.status}, and in eager mode nothing runs that could end it")

    def results(self) -> Iterator[JobResult]:
        """Yield the results of the jobs that have succeeded and whose task has `keep_result=True`, in the order in
        which the jobs were given. They are read in pages."""
        return kept.results(self.pk)

    def stop(self, *, kill_after: float | None = None) -> int:
        """Stop waiting jobs, and ask running jobs to stop; return how many were asked.

        The execution has ended when this returns: as Error if a job had failed before, else as Stopped. If it had
        ended before, its status stays.

        Args:
            kill_after: The seconds after which the processes of jobs that still run are killed. These jobs do not
                run again. It needs the pool `prefork`.
        """
        running = stop_jobs(self.pk, kill_after=kill_after)
        self.refresh_from_db()
        return running

    def retry_failed(self) -> int:
        """Run failed jobs once more, and the jobs that need them; return how many. The execution is Running when
        this returns. If no job had failed, it is unchanged."""
        count = again.retry_failed(self.pk)
        self.refresh_from_db()
        return count

    def resume_stopped(self) -> int:
        """Run stopped jobs once more; return how many. The execution is Running when this returns. If no job was
        stopped, it is unchanged. Exception: an execution that was stopped while open ends as its jobs ended."""
        count = again.resume_stopped(self.pk)
        self.refresh_from_db()
        return count

    aprogress = asynchronous(progress)
    aadd = asynchronous(add)
    aclose = asynchronous(close)
    astop = asynchronous(stop)
    aretry_failed = asynchronous(retry_failed)
    aresume_stopped = asynchronous(resume_stopped)
