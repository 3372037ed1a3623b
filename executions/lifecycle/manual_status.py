"""Set the final status of an execution that has no tasks, by hand."""

from collections.abc import Sequence

from django.db import transaction

from harbor_refresh.executions.attached.ownership import Operation, harbors
from harbor_refresh.executions.database import run
from harbor_refresh.executions.errors import AlreadyFinal, HasTasks, NoSuchExecution
from harbor_refresh.executions.lifecycle import links
from harbor_refresh.executions.models import Execution
from harbor_refresh.executions.news.after_commit import tell_changes_written_after_commit
from harbor_refresh.executions.status import is_final


@harbors(Operation.FINISH)
def finish(execution_id: int, status: str, message: str = "") -> None:
    """Set the final status under the execution's lock, so that of two concurrent calls only the first sets it."""
    with transaction.atomic():
        execution = Execution.objects.select_for_update().filter(pk=execution_id).first()
        if execution is None:
            raise NoSuchExecution(execution_id)
        if execution.tasks.exists():
            raise HasTasks(
                f"execution {execution_id} has tasks: its status follows from them. "
                "Report the tasks, or stop the execution"
            )
        if is_final(execution.status):
            raise AlreadyFinal(f"execution {execution_id} is {execution.status} already")
        end([execution_id], status, message)


def end(execution_ids: Sequence[int], status: str, message: str = "") -> None:
    """Write this final status. The caller has locked these executions, which have no tasks and have not ended."""
    if not execution_ids:
        return
    rows = run("finish_executions", execution_ids=list(execution_ids), status=str(status), message=message)
    links.carry_up(list(execution_ids))
    if any(untold for (untold,) in rows):
        tell_changes_written_after_commit()
