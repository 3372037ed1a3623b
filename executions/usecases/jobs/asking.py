"""Ask: what the database knows of a job, for a worker whose Redis may have forgotten it."""

from dataclasses import dataclass

from executions.database import absence_translated
from executions.models import Task
from executions.status import Status


@dataclass(frozen=True)
class Known:
    is_over: bool
    is_running: bool = False
    revision: int = 0
    runs: int = 0


def known(task_id: int) -> Known:
    """A task that is gone is over. One that was running has run once more than it was run again; its next
    run is a new revision."""
    with absence_translated():
        task = Task.objects.filter(pk=task_id).first()
    if task is None or Status(task.status).is_final:
        return Known(is_over=True)
    has_begun = task.status == Status.RUNNING
    return Known(False, has_begun, task.status_revision + has_begun, task.run_count + has_begun)
