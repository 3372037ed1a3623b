"""Tasks over HTTP: those of an execution, one, and reports, of which one request takes thousands."""

from typing import Any

from django.http import HttpRequest
from ninja import Query, Router, Status
from pydantic import Field

from harbor_refresh.executions.api.access import Scope
from harbor_refresh.executions.api.answers import AttributePairs, Key, PageIn, needs, once, page_of_tasks, pairs
from harbor_refresh.executions.api.schemas import (
    AttributesIn,
    CreatedTasks,
    ExecutionId,
    NewTasksIn,
    OneReportIn,
    ReportResult,
    ReportsIn,
    ReportsOut,
    StatusName,
    TaskId,
    TaskItem,
    TaskOut,
    as_dict,
    page_of,
)
from harbor_refresh.executions.errors import NoSuchTask, Refused
from harbor_refresh.executions.lifecycle import creation
from harbor_refresh.executions.lifecycle.creation import NewTask
from harbor_refresh.executions.lifecycle.reports import Report, Source, report
from harbor_refresh.executions.models import Task
from harbor_refresh.executions.queries.filters import Filter, with_attributes

router = Router(tags=["Tasks"])


class TasksIn(PageIn):
    status: list[StatusName] = Field([], max_length=6, description="One or several; any of them matches.")
    attribute: AttributePairs = Field([])


@router.get(
    "/executions/{execution_id}/tasks",
    **needs(Scope.READ, "List the tasks of an execution, the oldest first", page_of(TaskItem), 400, 404),
)
def list_tasks(request: HttpRequest, execution_id: ExecutionId, query: Query[TasksIn]) -> Any:
    """The items leave out `extra_attrs`, which *Show one task* returns. With `attribute`, a page ends after 20,000
    tasks were compared, so a page with few items need not be the last. Continue until `next` is null."""
    attributes = Filter(attributes=pairs(query.attribute)).attributes
    rows = with_attributes(Task.objects.defer("extra_attrs"), attributes)
    if query.status:  # a status may have changed since the ids were read
        rows = rows.filter(status__in=query.status)
    return page_of_tasks(execution_id, rows, query, TaskItem, query.status, is_filtered=bool(attributes))


@router.post(
    "/executions/{execution_id}/tasks",
    **needs(Scope.REPORT, "Add tasks to an execution that has not ended", CreatedTasks, 400, 404, 409, status=201),
)
def add_tasks(
    request: HttpRequest, execution_id: ExecutionId, body: NewTasksIn, idempotency_key: Key = None
) -> Any:
    def make() -> dict[str, Any]:
        tasks = [NewTask(one.job_id, one.extra_attrs) for one in body.tasks]
        return {"task_ids": creation.add_tasks(execution_id, tasks)}

    return Status(201, once(request, idempotency_key, make))


@router.get("/tasks/{task_id}", **needs(Scope.READ, "Show one task", TaskOut, 404))
def get_task(request: HttpRequest, task_id: TaskId) -> Any:
    if task := Task.objects.filter(pk=task_id).first():
        return as_dict(task, TaskOut)
    raise NoSuchTask(task_id)


@router.patch("/tasks/{task_id}", **needs(Scope.REPORT, "Replace the extra_attrs of a task", TaskOut, 400, 404))
def change_task(request: HttpRequest, task_id: TaskId, body: AttributesIn) -> Any:
    if not creation.replace_attributes(Task, task_id, body.extra_attrs):
        raise NoSuchTask(task_id)
    return get_task(request, task_id)


@router.post(
    "/tasks/{task_id}/report",
    **needs(Scope.REPORT, "Report the status of one task", ReportResult, 400, 404),
)
def report_task(request: HttpRequest, task_id: TaskId, body: OneReportIn) -> Any:
    """A report that is repeated, late or out of order changes nothing; its result is `unchanged`."""
    given = Report(task_id, body.status, body.revision, body.message, body.earlier_runs)
    outcome = report([given], Source.API)
    for refusal in outcome.refused:
        if refusal.is_unknown:
            raise NoSuchTask(task_id)
        raise Refused(refusal.reason)
    return {"position": 0, "task_id": task_id, "result": "applied" if outcome.applied else "unchanged"}


@router.post(
    "/reports",
    **needs(Scope.REPORT, "Report the status of many tasks", ReportsOut, 400, 413),
    tags=["Reports"],
)
def report_many(request: HttpRequest, body: ReportsIn) -> Any:
    """Each report has a result: `applied`; `unchanged`, because it was repeated, late or out of order; or
    `refused`, with the reason. A refused report does not stop the others. Reports are applied in the given
    order."""
    given = [Report(one.task_id, one.status, one.revision, one.message, one.earlier_runs) for one in body.reports]
    outcome = report(given, Source.API)
    results = [
        {"position": place, "task_id": one.task_id, "result": "unchanged"} for place, one in enumerate(given)
    ]
    for position in outcome.applied_at:
        results[position]["result"] = "applied"
    for refusal in outcome.refused:
        results[refusal.position] |= {"result": "refused", "reason": refusal.reason}
    return {
        "applied": outcome.applied,
        "unchanged": outcome.unchanged,
        "refused": len(outcome.refused),
        "results": results,
    }
