"""Every error of ours, under one root. The docstring of a class is its message, also beside one of a server."""

from django.core.exceptions import ObjectDoesNotExist


class RefreshError(Exception):
    """Something in Harbor Refresh went wrong."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


class Refused(RefreshError):
    """The input cannot be used; nothing was written."""


class NoSuchExecution(Refused, ObjectDoesNotExist):
    """There is no execution with that id."""

    def __init__(self, execution_id: int) -> None:
        super().__init__(f"there is no execution {execution_id}")


class NoSuchTask(Refused):
    """There is no task with that id."""

    def __init__(self, task_id: int) -> None:
        super().__init__(f"there is no task {task_id}")


class NoSuchSubscription(Refused):
    """There is no webhook with that id."""

    def __init__(self, subscription_id: int) -> None:
        super().__init__(f"there is no webhook {subscription_id}")


class NoTaskYet(Refused):
    """There is no task of this job; it may still be created."""


class TaskDeleted(Refused):
    """The task was deleted, so no report about it can be used."""


class OwnedByHarbor(Refused):
    """Harbor owns executions and tasks here, so this is to be done in Harbor."""


class HasTasks(Refused):
    """The execution has tasks, so its status follows from them and cannot be set by hand."""


class AlreadyFinal(Refused):
    """The execution already has a final status, and the first final status stands."""


class ExecutionClosed(AlreadyFinal):
    """The execution is closed, so nothing can be added; start another one."""


class NotFinal(Refused):
    """The execution has not ended; stop it first, or finish it if it has no tasks."""


class StillReferenced(Refused):
    """A row of the project, or of another program, names the execution, so PostgreSQL keeps it."""


class ExtraMissing(Refused):
    """Webhooks need packages that are not installed here: pip install "harbor-refresh[http]"."""


class NoSuchQueue(Refused):
    """No worker takes from a queue of that name."""


class TooManyActions(Refused):
    """Too many actions are open; wait until one has ended, or stop one."""


class AlreadyUnderWay(Refused):
    """All of the jobs are unique, and already queued or running; nothing was started."""


class Contended(RefreshError):
    """In every attempt, another caller took one of these unique jobs first; nothing was written."""


class StillRunning(RefreshError, TimeoutError):
    """The execution has not ended in the time it was given."""


class NotCommitted(RefreshError):
    """A transaction is open, and the execution has not ended: call wait() after the commit."""


class NoInstance(RefreshError):
    """This worker cannot know which part of the executions is its own."""


class QueueUnavailable(RefreshError):
    """Redis is down; nothing is lost, reconcile finds what was not marked."""


class QueueRefused(QueueUnavailable):
    """Redis answers, and refuses this program."""


class QueueRightMissing(QueueRefused):
    """Redis answers, and refuses this program: its user may not use that command, or not on that key."""


class LeaseLost(RefreshError):
    """Another process took over the lease of this work, because it had expired."""


class DatabaseDown(RefreshError):
    """The database is down."""


class TableLocked(DatabaseDown):
    """Another transaction, such as a migration, holds a whole table; the work goes back to the queue and waits."""


class NotMigrated(DatabaseDown):
    """The tables are missing, or those of another release; type: python manage.py migrate"""


class DatabaseRefused(DatabaseDown):
    """The database answers, and refuses this program."""


class RightMissing(DatabaseRefused):
    """The role of DATABASE_URL lacks a right."""


class PoolerRefused(DatabaseRefused):
    """A PgBouncer stands before the database, and refuses the options of the connection."""
