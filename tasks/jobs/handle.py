"""The job as its own code sees it: the first argument of a tracked job."""

from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

from executions.errors import QueueUnavailable
from executions.text import made_storable
from tasks.jobs.records.records import job_records
from tasks.jobs.records.run import Run
from tasks.jobs.runtime import current_runs

if TYPE_CHECKING:
    from celery import Task


class Handle:
    """One run of a job."""

    def __init__(self, task: "Task[Any, Any]", run: Run, *, is_followed: bool = False) -> None:
        self._task = task
        self.run = run
        self.is_followed = is_followed
        self.was_told_to_stop = False
        self.waits_for_another_try = False
        self.reason = ""

    def check_in(self, message: str = "") -> None:
        """Say that it goes on, and how far it is. A job without a check-in for REFRESH_JOB_HOURS ends as Error."""
        self._say(made_storable(message))

    def should_stop(self) -> bool:
        """Somebody has stopped the execution, or this run was taken for dead and given to another. A job that
        returns after that was stopped."""
        self._say()
        return self.was_told_to_stop

    def retry(self, **options: Any) -> NoReturn:
        """Run again later, as `Task.retry`; the execution goes on meanwhile."""
        raise self._task.retry(**options)

    def _say(self, message: str = "") -> None:
        """A Redis that is away is no reason for a job to fail."""
        with suppress(QueueUnavailable):
            should_stop = job_records().check_in(self.run, message)
            self.was_told_to_stop = self.was_told_to_stop or should_stop or current_runs.is_lost(self.run)


class Untracked(Handle):
    """For a job that was called like any function, or sent without an execution: nobody follows it."""

    def __init__(self, task: "Task[Any, Any]") -> None:
        super().__init__(task, Run("", 0, "", 0, 0))

    def check_in(self, message: str = "") -> None:
        pass

    def should_stop(self) -> bool:
        return False
