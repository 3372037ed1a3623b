"""What can be done, one verb a module. Neither Redis nor Celery is imported here."""

from executions.usecases.creating import NewExecution, NewTask, create, create_many
from executions.usecases.deleting import delete
from executions.usecases.dispatching import dispatch
from executions.usecases.marking import mark
from executions.usecases.quarantining import release
from executions.usecases.reconciling import reconcile
from executions.usecases.recovering import recover
from executions.usecases.refreshing import refresh
from executions.usecases.reporting import Report, report
from executions.usecases.rousing import rouse
from executions.usecases.setting import mark_done, mark_error
from executions.usecases.stopping import stop
from executions.usecases.working import work

__all__ = [
    "NewExecution",
    "NewTask",
    "Report",
    "create",
    "create_many",
    "delete",
    "dispatch",
    "mark",
    "mark_done",
    "mark_error",
    "reconcile",
    "recover",
    "refresh",
    "release",
    "report",
    "rouse",
    "stop",
    "work",
]
