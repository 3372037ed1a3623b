"""The job as its own code sees it: the first argument of a tracked job."""

from typing import TYPE_CHECKING, Any, NoReturn

from executions.queue import job_records, this_node

if TYPE_CHECKING:
    from celery import Task


class Handle:
    """One run of a job."""

    def __init__(self, task: "Task[Any, Any]", job: str, task_id: int, revision: int) -> None:
        self._task = task
        self.id = job
        self.task_id = task_id
        self.revision = revision
        self.was_told_to_stop = False
        self.reason = ""

    def check_in(self, message: str = "") -> None:
        """It goes on, and how far it is. Whoever is not heard of for REFRESH_JOB_HOURS is taken for lost."""
        self._hear(job_records().check_in(self.id, this_node.name, self.revision, message))

    def should_stop(self) -> bool:
        """Somebody has stopped the execution, or this run was taken for dead and given to another. A job that
        returns after that was stopped."""
        self._hear(job_records().check_in(self.id, this_node.name, self.revision))
        return self.was_told_to_stop

    def retry(self, **options: Any) -> NoReturn:
        """Run again later, as `Task.retry`; the execution goes on meanwhile."""
        raise self._task.retry(**options)

    def _hear(self, should_stop: bool) -> None:
        self.was_told_to_stop = self.was_told_to_stop or should_stop


class Untracked(Handle):
    """For a job that was called like any function, or sent without an execution: nobody follows it."""

    def __init__(self, task: "Task[Any, Any]") -> None:
        super().__init__(task, "", 0, 0)

    def check_in(self, message: str = "") -> None:
        pass

    def should_stop(self) -> bool:
        return False
