"""Stop an execution: its unfinished tasks become Stopped, and its status is refreshed at once."""

from django.db import transaction

from executions.database import run
from executions.errors import NoSuchExecution
from executions.manual_status import finish
from executions.models import Execution
from executions.news import tell_changed_after_commit
from executions.quarantines import release
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
