"""Every error of ours, under one root. The docstring of a class is its message."""


class RefreshError(Exception):
    """Something in Harbor Refresh went wrong."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


class Refused(RefreshError):
    """The input cannot be used; nothing was written."""


class NoSuchExecution(Refused):
    """There is no execution with that id."""

    def __init__(self, execution_id: int) -> None:
        super().__init__(f"there is no execution {execution_id}")


class NoSuchTask(Refused):
    """There is no task with that id."""

    def __init__(self, task_id: int) -> None:
        super().__init__(f"there is no task {task_id}")


class HasTasks(Refused):
    """The execution has tasks, so its status follows from them and cannot be set by hand."""


class AlreadyFinal(Refused):
    """The execution has reached a final status already, and the first final status stands."""


class NotFinal(Refused):
    """A task of the execution has not ended; stop the execution first."""


class AlreadyUnderWay(Refused):
    """Each of the jobs is unique, and is queued or running already; nothing was started."""


class Contended(RefreshError):
    """In each attempt another caller took one of these unique jobs at that moment; nothing was written."""


class StillRunning(RefreshError, TimeoutError):
    """The execution has not ended in the time it was given."""


class NotCommitted(RefreshError):
    """The jobs begin after the commit of this transaction: call wait() after the commit."""


class NoInstance(RefreshError):
    """This worker cannot know which part of the executions is its own."""


class QueueUnavailable(RefreshError):
    """Redis cannot be reached or refuses to work; nothing is lost, reconcile will find it again."""


class JobChanged(RefreshError):
    """The job changed each time it was looked at; its message comes again."""


class Overtaken(RefreshError):
    """Another process took over the lease of this one, because it had expired."""


class DatabaseAway(RefreshError):
    """PostgreSQL cannot be reached at the moment; the work goes back to the queue and waits."""
