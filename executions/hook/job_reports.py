"""Reports that name a job: one statement finds its task and applies the report."""

from harbor_refresh.executions.database import run
from harbor_refresh.executions.errors import NoTaskYet, TaskDeleted
from harbor_refresh.executions.hook.status_change import StatusChange
from harbor_refresh.executions.lifecycle.reports import Source, after_commit
from harbor_refresh.executions.lifecycle.tombstones import is_deleted
from harbor_refresh.executions.news.steps import step

#: No task has this id: the job alone finds the task.
NO_TASK = 0


def report_by_job(change: StatusChange, task_id: int = NO_TASK) -> bool:
    """Apply the report to the task of its job. True if it changed the task.

    The job id finds the task. If no task has it, the id in the address does, unless that task belongs to another
    job: so a report that comes before the job id of its task is stored is not lost.

    It is one statement, so it needs no transaction of its own. After the commit the execution is marked and, after
    a stop, refreshed, as after any report. Raises NoTaskYet or TaskDeleted.

    What if the process dies before the statement has ended: nothing happened, and the sender tries again. After
    it: the sender tries again, which changes nothing, and reconcile finds the execution.
    """
    with step("report", source=Source.HOOK) as note:
        found = run(
            "report_by_job",
            job_id=change.job_id,
            task_id=task_id,
            status=change.status,
            code=change.code,
            revision=change.revision,
            message=change.message,
        )
        if not found:
            raise missing(change, task_id)
        _, execution_id, vendor_type = found[0]
        if execution_id is None:
            note(unchanged=1)
            return False
        note(applied=1, executions=[execution_id])
        has_stopped = change.status == "Stopped"
        after_commit([(execution_id, vendor_type)], [execution_id] if has_stopped else [])
        return True


def missing(change: StatusChange, task_id: int) -> NoTaskYet | TaskDeleted:
    """Return why there is no task: it was deleted, or it may still be created."""
    kind = TaskDeleted if is_deleted(task_id, [change.job_id, change.upstream_id]) else NoTaskYet
    return kind(change.job_id, task_id)
