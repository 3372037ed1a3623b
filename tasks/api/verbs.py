"""Stop, retry and resume over HTTP. They are here and not in executions/api, because they act on jobs as well."""

from collections.abc import Callable
from typing import Annotated, Any

from django.http import HttpRequest
from ninja import Router, Schema
from pydantic import Field

from harbor_refresh.executions.api.access import Scope
from harbor_refresh.executions.api.answers import detail, needs
from harbor_refresh.executions.api.schemas import ExecutionDetail, ExecutionId, TaskId
from harbor_refresh.executions.errors import NoSuchExecution
from harbor_refresh.executions.news.audit import Target, Word, noted, outcome_of, person_of
from harbor_refresh.tasks.jobs.again import resume_stopped, retry_failed, run_job_again
from harbor_refresh.tasks.jobs.stops import stop_job_of, stop_jobs_of

router = Router(tags=["Executions"])


RunAgain = Annotated[
    int, Field(description="The number of jobs that run once more. Tasks of other runners are not included.")
]


class Retried(Schema):
    retried: RunAgain


class Resumed(Schema):
    resumed: RunAgain


class StoppedTask(Schema):
    stopped: bool = Field(description="False: the task had already ended.")


@router.post("/executions/{execution_id}/stop", **needs(Scope.MANAGE, "Stop an execution", ExecutionDetail, 404))
def stop_execution(request: HttpRequest, execution_id: ExecutionId) -> Any:
    """Its unfinished tasks become Stopped. Waiting jobs do not begin; running jobs are asked to stop. An execution
    that has ended stays as it is."""
    with noted(person_of(request), Word.STOP, Target.EXECUTION, execution_id) as entry:
        stopped = stop_jobs_of([execution_id])
        if not stopped.found:
            raise NoSuchExecution(execution_id)
        entry.outcome = outcome_of(len(stopped.executions))
    return detail(execution_id)


@router.post(
    "/executions/{execution_id}/retry",
    **needs(Scope.MANAGE, "Run the failed jobs of an execution once more", Retried, 404),
)
def retry_execution(request: HttpRequest, execution_id: ExecutionId) -> Any:
    return {"retried": _run_again(request, Word.RETRY, Target.EXECUTION, execution_id, retry_failed)}


@router.post(
    "/executions/{execution_id}/resume",
    **needs(Scope.MANAGE, "Run the stopped jobs of an execution once more", Resumed, 404),
)
def resume_execution(request: HttpRequest, execution_id: ExecutionId) -> Any:
    """Jobs behind a failed job in their chain do not run; they run when the failed job is retried."""
    return {"resumed": _run_again(request, Word.RESUME, Target.EXECUTION, execution_id, resume_stopped)}


@router.post(
    "/tasks/{task_id}/stop", **needs(Scope.MANAGE, "Stop one task and its job", StoppedTask, 404), tags=["Tasks"]
)
def stop_one_task(request: HttpRequest, task_id: TaskId) -> Any:
    with noted(person_of(request), Word.STOP, Target.TASK, task_id) as entry:
        is_stopped = stop_job_of(task_id)
        entry.outcome = outcome_of(is_stopped)
    return {"stopped": is_stopped}


@router.post(
    "/tasks/{task_id}/retry",
    **needs(Scope.MANAGE, "Run the job of one task once more", Retried, 404),
    tags=["Tasks"],
)
def retry_one_task(request: HttpRequest, task_id: TaskId) -> Any:
    """The job must have failed or been stopped. The jobs after it in its chain run again, too."""
    return {"retried": _run_again(request, Word.RETRY, Target.TASK, task_id, run_job_again)}


def _run_again(request: HttpRequest, word: Word, of: Target, target: int, run_again: Callable[[int], int]) -> int:
    """Run the jobs of this execution or task again, with an entry in the log of actions. Returns how many."""
    with noted(person_of(request), word, of, target) as entry:
        entry.count = count = run_again(target)
        entry.outcome = outcome_of(count)
    return count
