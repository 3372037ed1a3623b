"""Stop the jobs of an execution: what waits is not begun any more, what runs is asked to stop."""

from executions.models import Task
from executions.queue import job_records
from executions.status import FINAL_CODE
from executions.usecases.stopping import stop


def stop_jobs(execution_id: int) -> int:
    """Returns how many run and were asked to stop. The execution is Stopped when this returns.

    Redis first: what if the process dies in between, the jobs that wait are not begun, each says so, and their
    tasks become Stopped one by one. The other way round they would run though their tasks had ended.
    """
    waiting = Task.objects.filter(execution_id=execution_id, status_code__lt=FINAL_CODE).exclude(job_id="")
    running = job_records().stop(waiting.values_list("job_id", flat=True).iterator())
    stop(execution_id)
    return running
