"""Stop an execution, or one task: what is unfinished becomes Stopped, and the status is refreshed at once."""

from django.db import transaction

from executions.database import run
from executions.errors import NoSuchExecution, NoSuchTask
from executions.manual_status import finish
from executions.models import Execution, Task
from executions.news import tell_changed_after_commit
from executions.quarantines import release
from executions.reports import Report, report
from executions.rollup import refresh
from executions.status import Status, is_final


def stop(execution_id: int) -> int:
    """Stop the tasks that are not final, and refresh in the same transaction. Return how many tasks it stopped.

    An execution without tasks that is not final becomes Stopped itself. To stop an execution that has ended
    changes nothing. A later report changes a stopped task only if its revision is newer. The execution is locked
    before its tasks, as in `delete`. An execution in quarantine is released in the same transaction, because
    nothing in quarantine is refreshed. If its refresh fails again, it is marked like any other.
    """
    with transaction.atomic():
        locked = Execution.objects.select_for_update(no_key=True)
        execution = locked.filter(pk=execution_id).first()
        if execution is None:
            raise NoSuchExecution(execution_id)
        release([execution_id])
        stopped: int = run("stop_tasks", execution_id=execution_id)[0][0]
        if execution.tasks.exists():
            outcome = refresh([execution_id])
            if outcome.failed:
                tell_changed_after_commit([(execution_id, execution.vendor_type)])
        elif not is_final(execution.status):
            finish(execution_id, Status.STOPPED, "")
    return stopped


def stop_task(task_id: int) -> bool:
    """Stop one task. False if it has ended already. Its execution is refreshed after the commit, as after any
    report of a stop; an execution in quarantine is released before.

    The rows are locked before the task is reported, so that it is the current run that stops.
    """
    with transaction.atomic():
        execution_id = Task.objects.filter(pk=task_id).values_list("execution_id", flat=True).first()
        if execution_id is None:
            raise NoSuchTask(task_id)
        Execution.objects.select_for_update(no_key=True).filter(pk=execution_id).first()
        task = Task.objects.select_for_update(no_key=True).filter(pk=task_id).first()
        if task is None:
            raise NoSuchTask(task_id)
        if is_final(task.status):
            return False
        release([execution_id])
        return report([Report(task_id, Status.STOPPED, task.status_revision)]).applied == 1
