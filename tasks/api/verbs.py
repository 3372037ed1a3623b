"""Stop and retry over HTTP. They are here and not in executions/api, because they act on running jobs as well."""

from typing import Annotated, Any

from django.http import HttpRequest
from ninja import Path, Router, Schema
from pydantic import Field

from executions.api.access import Scope, may
from executions.api.answers import answers, detail
from executions.api.schemas import ExecutionDetail, Id
from tasks.jobs.lifecycle.job_stops import stop_job_of, stop_jobs
from tasks.jobs.lifecycle.retries import retry_failed

router = Router(tags=["Executions"])

ExecutionId = Annotated[Id, Path(description="The id of the execution.")]


class Retried(Schema):
    retried: int = Field(description="How many jobs run once more. Tasks of other runners are left to these.")


class StoppedTask(Schema):
    stopped: bool = Field(description="False: it had ended already.")


@router.post(
    "/executions/{execution_id}/stop",
    auth=may(Scope.MANAGE),
    response=answers({200: ExecutionDetail}, 404),
    summary="Stop an execution",
)
def stop_execution(request: HttpRequest, execution_id: ExecutionId) -> Any:
    """Its unfinished tasks become Stopped. Its jobs that wait do not begin; those that run are asked to stop. An
    execution that has ended stays as it is."""
    stop_jobs(execution_id)
    return detail(execution_id)


@router.post(
    "/executions/{execution_id}/retry",
    auth=may(Scope.MANAGE),
    response=answers({200: Retried}, 404),
    summary="Try the failed jobs of an execution once more",
)
def retry_execution(request: HttpRequest, execution_id: ExecutionId) -> Any:
    return {"retried": retry_failed(execution_id)}


@router.post(
    "/tasks/{task_id}/stop",
    auth=may(Scope.MANAGE),
    response=answers({200: StoppedTask}, 404),
    summary="Stop one task and its job",
    tags=["Tasks"],
)
def stop_one_task(request: HttpRequest, task_id: Annotated[Id, Path(description="The id of the task.")]) -> Any:
    return {"stopped": stop_job_of(task_id)}
