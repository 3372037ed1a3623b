"""Actions on many executions over HTTP: ask for one by a filter, look at it, stop it."""

from datetime import datetime
from typing import Annotated, Any

from django.http import HttpRequest
from ninja import Path, Query, Router, Schema, Status
from pydantic import Field, JsonValue

from harbor_refresh.executions.access.audit import Kind, Word, noted, person_of
from harbor_refresh.executions.actions.action_pages import count
from harbor_refresh.executions.actions.bulk import find, refuse_empty, stop_action
from harbor_refresh.executions.api import pages
from harbor_refresh.executions.api.access import Scope, may
from harbor_refresh.executions.api.answers import answers
from harbor_refresh.executions.api.schemas import Body, Id, Moment, Page, StatusName, VendorId, as_dict
from harbor_refresh.executions.models import Action
from harbor_refresh.executions.models.operations import Origin, State, Verb
from harbor_refresh.executions.queries.filters import MAX_ATTRIBUTES, MAX_IDS, MAX_TRIGGER, Filter
from harbor_refresh.executions.status import MAX_VENDOR
from harbor_refresh.tasks.operations.bulk import ask_and_wake

router = Router(tags=["Actions on many executions"])

#: After this time a dry run answers with what it has counted so far.
COUNT_SECONDS = 2.0


class ActionIn(Body):
    """The executions that meet every given condition."""

    vendor_type: str = Field("", max_length=MAX_VENDOR, examples=["REPLICATION"])
    vendor_id: VendorId | None = None
    status: StatusName | Annotated[list[StatusName], Field(max_length=6)] = Field(
        [], description="One, or a list: any of them.", examples=["Running"]
    )
    trigger: str = Field("", max_length=MAX_TRIGGER)
    started_after: Moment | None = Field(None, description="With its zone: 2026-01-31T12:00:00Z.")
    started_before: Moment | None = None
    attributes: dict[str, str] = Field(
        {},
        max_length=MAX_ATTRIBUTES,
        description="Dotted paths into extra_attrs, with the text of the value there.",
        examples=[{"repository.name": "library/app"}],
    )
    ids: Annotated[list[Id], Field(max_length=MAX_IDS)] = Field([], description="Only these executions.")
    quarantined: bool | None = Field(
        None, description="True: only those in quarantine. False: only those that are not."
    )
    has_jobs: bool | None = Field(None, description="True: only those with a job. False: only those without.")
    all: bool = Field(False, description="Allow a filter without a condition, which chooses every execution.")
    dry_run: bool = Field(False, description="Count the executions, and do nothing.")

    def as_filter(self) -> Filter:
        return Filter(
            vendor_type=self.vendor_type,
            vendor_id=self.vendor_id,
            statuses=(self.status,) if isinstance(self.status, str) else tuple(self.status),
            trigger=self.trigger,
            started_after=self.started_after,
            started_before=self.started_before,
            attributes=self.attributes,
            ids=tuple(self.ids),
            quarantined=self.quarantined,
            has_jobs=self.has_jobs,
        )


class ActionOut(Schema):
    id: int
    verb: Verb
    filter: dict[str, JsonValue]
    state: State
    total: int | None = Field(
        description="How many were chosen when it began. Null until they are counted, or if that takes too long."
    )
    done: int = Field(description="The sum of the next three.")
    changed: int = Field(description="Executions that were stopped, retried, resumed, refreshed or deleted.")
    skipped: int = Field(
        description="There was nothing to do, or it has not ended and cannot be deleted, or it is gone."
    )
    failed: int = Field(description="The database refused; the first reason is in `error`.")
    progress: float | None = Field(description="From 0 to 1. Null while it is not known.")
    stop_asked: bool
    error: str
    requested_by: str
    requested_from: Origin
    created_at: datetime
    begun_at: datetime | None
    updated_at: datetime
    ended_at: datetime | None


class DryRun(Schema):
    count: int
    is_complete: bool = Field(description="False: the time for the count was up, so there may be more.")


class ActionPage(Page):
    items: list[ActionOut]


class ActionsIn(pages.PageIn):
    state: State | None = None


ActionId = Annotated[Id, Path(description="The id of the action.")]
ASKED: dict[str, Any] = {"auth": may(Scope.MANAGE), "response": answers({200: DryRun, 202: ActionOut}, 400, 409)}


@router.post("/executions/stop", **ASKED, summary="Stop all executions that a filter chooses")
def stop_executions(request: HttpRequest, body: ActionIn) -> Any:
    """Workers do it in the background, for the executions that there are now. 202: follow it at `/actions/{id}`.
    200: the count of a dry run."""
    return _ask(request, Verb.STOP, body)


@router.post("/executions/retry", **ASKED, summary="Retry the failed jobs of all executions that a filter chooses")
def retry_executions(request: HttpRequest, body: ActionIn) -> Any:
    """As for stop. Executions without failed jobs are skipped."""
    return _ask(request, Verb.RETRY, body)


@router.post("/executions/resume", **ASKED, summary="Run the stopped jobs of all executions that a filter chooses")
def resume_executions(request: HttpRequest, body: ActionIn) -> Any:
    """As for stop. Executions without stopped jobs are skipped."""
    return _ask(request, Verb.RESUME, body)


@router.post("/executions/refresh", **ASKED, summary="Refresh all executions that a filter chooses")
def refresh_executions(request: HttpRequest, body: ActionIn) -> Any:
    """As for stop. Executions whose status is what their tasks say are skipped, and so are those in quarantine."""
    return _ask(request, Verb.REFRESH, body)


@router.post(
    "/executions/delete", **ASKED, summary="Delete all executions that a filter chooses and that have ended"
)
def delete_executions(request: HttpRequest, body: ActionIn) -> Any:
    """As for stop. Executions that have not ended are skipped: stop them first."""
    return _ask(request, Verb.DELETE, body)


@router.get(
    "/actions",
    auth=may(Scope.READ),
    response=answers({200: ActionPage}, 400),
    summary="List actions, the newest first",
)
def list_actions(request: HttpRequest, query: Query[ActionsIn]) -> Any:
    rows = Action.objects.all() if query.state is None else Action.objects.filter(state=query.state)
    return pages.newest_first(rows, query, ActionOut)


@router.get(
    "/actions/{action_id}",
    auth=may(Scope.READ),
    response=answers({200: ActionOut}, 404),
    summary="Look at one action",
)
def get_action(request: HttpRequest, action_id: ActionId) -> Any:
    return as_dict(find(action_id), ActionOut)


@router.post(
    "/actions/{action_id}/stop",
    auth=may(Scope.MANAGE),
    response=answers({200: ActionOut}, 404, 409),
    summary="Stop an action",
)
def stop_one_action(request: HttpRequest, action_id: ActionId) -> Any:
    """It ends at once, or with the page of executions in progress. What is done stays done. 409: it has ended."""
    with noted(person_of(request), Word.STOP, Kind.ACTION, action_id):
        action = stop_action(action_id)
    return as_dict(action, ActionOut)


def _ask(request: HttpRequest, verb: Verb, body: ActionIn) -> Any:
    chosen = body.as_filter()
    if body.dry_run:
        refuse_empty(chosen, everything=body.all)
        return Status(200, count(chosen, seconds=COUNT_SECONDS))
    caller = person_of(request)
    action = ask_and_wake(
        verb, chosen, by=caller.name, origin=Origin.API, address=caller.address, everything=body.all
    )
    return Status(202, as_dict(action, ActionOut))
