"""The jobs of tasks over HTTP: what each does at this moment."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest
from ninja import Query, Router
from pydantic import BaseModel, Field, JsonValue

from harbor_refresh.executions.api.access import Scope
from harbor_refresh.executions.api.answers import PageIn, needs, page_of_tasks
from harbor_refresh.executions.api.problems import Problem
from harbor_refresh.executions.api.schemas import ExecutionId, TaskId, page_of
from harbor_refresh.executions.status import Status
from harbor_refresh.tasks.jobs.queries import check_in_of
from harbor_refresh.tasks.jobs.running.kept_ends import PAGE, end_of, kept_results
from harbor_refresh.tasks.models.job import Job, JobEnd

router = Router(tags=["Tasks"])

#: Without the columns that may be large.
JOBS = Job.objects.select_related("task").defer("args", "kwargs", "result", "task__extra_attrs")


class CheckInOut(BaseModel):
    message: str = Field(examples=["layer 3 of 7"], description="What the job said; empty if it said nothing.")
    done: int | None = Field(examples=[3], description="How much is done. Null if the job gave no numbers.")
    of: int | None = Field(examples=[7], description="How much there is in total.")
    progress: float | None = Field(examples=[0.43], description="The share that is done, from 0 to 1.")
    at: datetime = Field(description="When the job was last heard from.")


class JobOut(BaseModel):
    task_id: int = Field(examples=[91])
    name: str = Field(examples=["mirror.replicate"], description="The Celery task.")
    status: str = Field(examples=["Running"], description=f"The task's status: one of {', '.join(Status.values)}.")
    check_in: CheckInOut | None = Field(
        description="The last check-in of its run. Null if it does not run or has not checked in."
    )


class ResultOut(BaseModel):
    task_id: int = Field(examples=[91])
    name: str = Field(examples=["mirror.replicate"], description="The Celery task.")
    value: JsonValue = Field(examples=[{"layers": 7}], description="What the job returned.")
    why_not: str = Field(examples=[""], description="Why the value was not kept; empty if it was.")


class JobDetail(JobOut):
    result: ResultOut | None = Field(
        description="Null unless it is Success and its task keeps results (`keep_result`)."
    )
    traceback: str = Field(
        examples=[""], description="After an Error, the end of the traceback, without secrets. Otherwise empty."
    )


class ResultsIn(PageIn):
    limit: int = Field(PAGE, ge=1, le=PAGE, description="The maximum number of items on the page.")


@router.get(
    "/executions/{execution_id}/results",
    **needs(
        Scope.READ, "List the kept results of an execution, the oldest job first", page_of(ResultOut), 400, 404
    ),
)
def list_results(request: HttpRequest, execution_id: ExecutionId, query: Query[ResultsIn]) -> Any:
    """A job has a kept result if it has succeeded and its task keeps results."""
    return page_of_tasks(execution_id, kept_results(), query, ResultOut, [Status.SUCCESS], shown=_result)


@router.get(
    "/executions/{execution_id}/jobs",
    **needs(Scope.READ, "List the jobs of an execution, the oldest first", page_of(JobOut), 400, 404),
)
def list_jobs(request: HttpRequest, execution_id: ExecutionId, query: Query[PageIn]) -> Any:
    """Tasks of other runners have no job; their progress is in the message of the task."""
    return page_of_tasks(execution_id, JOBS, query, JobOut, shown=_job)


@router.get("/tasks/{task_id}/job", **needs(Scope.READ, "Show the job of one task", JobDetail, 404))
def get_job(request: HttpRequest, task_id: TaskId) -> Any:
    job = JOBS.filter(pk=task_id).first()
    if job is None:
        raise Problem(404, "Not found", f"there is no job of task {task_id}")
    end = end_of(task_id)
    result = _result(end) if end and not end.traceback else None
    return _job(job) | {"result": result, "traceback": end.traceback if end else ""}


def _job(job: Job) -> dict[str, Any]:
    return {"task_id": job.pk, "name": job.name, "status": job.task.status, "check_in": _check_in(job)}


def _result(end: JobEnd) -> dict[str, Any]:
    return {"task_id": end.pk, "name": end.job.name, "value": end.result, "why_not": end.why_not}


def _check_in(job: Job) -> dict[str, Any] | None:
    if (said := check_in_of(job)) is None:
        return None
    return {"message": said.message, "done": said.done, "of": said.of, "progress": said.share, "at": job.heard_at}
