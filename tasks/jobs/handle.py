"""The handle of a job: the first argument of its function."""

from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

from harbor_refresh.executions.errors import QueueUnavailable, Refused
from harbor_refresh.tasks.jobs.execution import TrackedExecution
from harbor_refresh.tasks.jobs.records.arguments import Arguments
from harbor_refresh.tasks.jobs.records.check_in import CheckIn
from harbor_refresh.tasks.jobs.records.records import job_records
from harbor_refresh.tasks.jobs.records.run import Run
from harbor_refresh.tasks.jobs.runtime import current_runs

if TYPE_CHECKING:
    from celery import Task


class Handle:
    """One run of a job. It was `given` these arguments, as they are stored."""

    def __init__(self, task: "Task[Any, Any]", run: Run, given: Arguments, *, is_followed: bool = False) -> None:
        self._task = task
        self.run = run
        self.given = given
        self.is_followed = is_followed
        self.was_told_to_stop = False
        self.waits_for_another_try = False
        self.reason = ""
        self.gives_arguments = False

    @property
    def execution(self) -> TrackedExecution:
        """The execution of this job, as it is now: for example `job.execution.add(jobs=[...])`. While a job runs,
        its execution does not end."""
        return TrackedExecution.objects.get(tasks=self.run.task_id)

    def check_in(self, message: str = "", *, done: int | None = None, of: int | None = None) -> None:
        """Check in, with a message about the progress, and with how much is done: 3 of 7. It replaces the check-in
        before it. A job that does not for REFRESH_JOB_HOURS ends as Error. Raises ValueError unless
        0 <= done <= of."""
        self._check_in(CheckIn.made(message, done, of).text)

    def should_stop(self) -> bool:
        """Return whether the execution was stopped, or the job was given to another run because this one seemed
        dead. If the job returns after that, it ends as Stopped."""
        self._check_in()
        return self.was_told_to_stop

    def retry(self, **options: Any) -> NoReturn:
        """Run again later, as `Task.retry` does. The execution stays Running meanwhile."""
        raise self._task.retry(**options)

    def _check_in(self, message: str = "") -> None:
        """Send a check-in; without a message, the last one stays. It may get lost, because a job must not
        fail while Redis is away."""
        with suppress(QueueUnavailable):
            should_stop = job_records().check_in(self.run, message)
            self.was_told_to_stop = self.was_told_to_stop or should_stop or current_runs.is_lost(self.run)


class Untracked(Handle):
    """The handle of a job that was called like a function, or sent without an execution. It is not tracked."""

    def __init__(self, task: "Task[Any, Any]") -> None:
        super().__init__(task, Run("", 0, "", 0, 0), Arguments([], {}, 0))

    @property
    def execution(self) -> TrackedExecution:
        raise Refused("this job was called like a function, so it belongs to no execution")

    def _check_in(self, message: str = "") -> None:
        """Send nothing: it has no record."""
