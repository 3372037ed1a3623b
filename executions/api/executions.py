"""Executions over HTTP: create, list, look at one, follow it, refresh, finish and delete."""

from typing import Any

from django.http import HttpRequest
from ninja import Query, Router, Status
from pydantic import Field

from harbor_refresh.executions.api.access import Scope
from harbor_refresh.executions.api.answers import (
    AttributePairs,
    Key,
    PageIn,
    answer,
    detail,
    needs,
    once,
    page,
    pairs,
    require_execution,
)
from harbor_refresh.executions.api.problems import LATER, Problem
from harbor_refresh.executions.api.schemas import (
    AttributesIn,
    Conditions,
    CreatedExecution,
    ExecutionDetail,
    ExecutionId,
    ExecutionItem,
    ExecutionOut,
    FinishIn,
    NewExecutionIn,
    StatusChangeOut,
    StatusName,
    as_dict,
    page_of,
)
from harbor_refresh.executions.database import HELD
from harbor_refresh.executions.errors import NoSuchExecution
from harbor_refresh.executions.lifecycle import creation, deletion, stops
from harbor_refresh.executions.lifecycle.creation import NewExecution, NewTask
from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.models import Execution, StatusChange
from harbor_refresh.executions.news.audit import Target, Word, noted, outcome_of, person_of
from harbor_refresh.executions.queries import listing
from harbor_refresh.executions.queries.filters import Filter


class ListIn(Conditions, PageIn):
    status: list[StatusName] = Field([], max_length=6, description="One or several; any of them matches.")
    attribute: AttributePairs = Field([])

    def as_filter(self) -> Filter:
        same = self.model_dump(exclude={"limit", "cursor", "status", "attribute"})
        return Filter(**same, statuses=self.status, attributes=pairs(self.attribute))


router = Router(tags=["Executions"])


@router.post(
    "/executions",
    **needs(Scope.REPORT, "Create an execution with its tasks", CreatedExecution, 400, status=201),
)
def create_execution(request: HttpRequest, body: NewExecutionIn, idempotency_key: Key = None) -> Any:
    """The creation is atomic. The execution begins as Running, its tasks as Pending."""

    def make() -> dict[str, Any]:
        tasks = [NewTask(one.job_id, one.extra_attrs) for one in body.tasks]
        new = NewExecution(body.vendor_type, body.vendor_id, body.trigger, body.extra_attrs, tasks)
        execution = creation.create(new)
        execution.refresh_from_db()
        task_ids = list(execution.tasks.order_by("pk").values_list("pk", flat=True))
        created = CreatedExecution(**as_dict(execution, ExecutionOut), task_ids=task_ids)
        return created.model_dump(mode="json")

    return Status(201, once(request, idempotency_key, make))


@router.get("/executions", **needs(Scope.READ, "List executions, the newest first", page_of(ExecutionItem), 400))
def list_executions(request: HttpRequest, query: Query[ListIn]) -> Any:
    """The items leave out `extra_attrs`, which *Show one execution* returns. A page ends after 20,000 executions
    were compared with the filter, so a page with few items need not be the last. Continue until `next` is null."""
    found, below = listing.page(query.as_filter(), query.limit, query.place)
    return answer(found, ExecutionItem, below)


@router.get("/executions/{execution_id}", **needs(Scope.READ, "Show one execution", ExecutionDetail, 404))
def get_execution(request: HttpRequest, execution_id: ExecutionId) -> Any:
    return detail(execution_id)


@router.patch(
    "/executions/{execution_id}",
    **needs(Scope.REPORT, "Replace the extra_attrs of an execution", ExecutionDetail, 400, 404),
)
def change_execution(request: HttpRequest, execution_id: ExecutionId, body: AttributesIn) -> Any:
    if not creation.replace_attributes(Execution, execution_id, body.extra_attrs):
        raise NoSuchExecution(execution_id)
    return detail(execution_id)


@router.delete(
    "/executions/{execution_id}",
    **needs(Scope.MANAGE, "Delete an execution that has ended", None, 404, 409, 412, status=204),
)
def delete_execution(request: HttpRequest, execution_id: ExecutionId) -> Any:
    """Its tasks, jobs and history are deleted, too. 409: a row of another table refers to it. 412: stop it first,
    because a task has not ended, or it has no tasks and was not finished."""
    with noted(person_of(request), Word.DELETE, Target.EXECUTION, execution_id):
        deletion.delete_ended(execution_id)
    return Status(204, None)


@router.get(
    "/executions/{execution_id}/history",
    **needs(
        Scope.READ, "List the status changes of an execution, the oldest first", page_of(StatusChangeOut), 400, 404
    ),
    by_alias=True,
)
def list_history(request: HttpRequest, execution_id: ExecutionId, query: Query[PageIn]) -> Any:
    require_execution(execution_id)
    rows = StatusChange.objects.filter(execution_id=execution_id)
    return page(rows, query, StatusChangeOut, by="revision")


@router.post(
    "/executions/{execution_id}/refresh",
    **needs(Scope.MANAGE, "Refresh one execution now", ExecutionDetail, 404, 409),
)
def refresh_now(request: HttpRequest, execution_id: ExecutionId) -> Any:
    """Workers do this after each report. An execution in quarantine is not refreshed. 409: the refresh failed, and
    `detail` says why."""
    require_execution(execution_id)
    with noted(person_of(request), Word.REFRESH, Target.EXECUTION, execution_id) as entry:
        outcome = refresh([execution_id])
        if outcome.locked:
            raise Problem(503, "Try again", HELD, LATER)
        reason = outcome.failed.get(execution_id, "")
        entry.outcome = outcome_of(outcome.changed, failed=bool(reason))
        entry.detail = reason
    if reason:
        raise Problem(409, "It could not be refreshed", reason)
    return detail(execution_id)


@router.post(
    "/executions/{execution_id}/finish",
    **needs(Scope.MANAGE, "Set the final status of an execution without tasks", ExecutionDetail, 400, 404, 409),
)
def finish(request: HttpRequest, execution_id: ExecutionId, body: FinishIn) -> Any:
    """409: the execution has tasks, so its status follows from them; or it has already ended."""
    with noted(person_of(request), Word.FINISH, Target.EXECUTION, execution_id) as entry:
        stops.finish(execution_id, body.status, body.message)
        entry.detail = body.status
    return detail(execution_id)
