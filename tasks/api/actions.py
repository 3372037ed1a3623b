"""Actions on many executions over HTTP: each is an execution itself."""

from typing import Annotated, Any

from django.http import HttpRequest
from ninja import Router, Schema, Status
from pydantic import Field

from harbor_refresh.executions.access.audit import Word, person_of
from harbor_refresh.executions.api.access import Scope
from harbor_refresh.executions.api.answers import detail, needs
from harbor_refresh.executions.api.schemas import Body, ExecutionDetail, Id, Moment, StatusName, VendorId
from harbor_refresh.executions.queries.chosen_pages import count
from harbor_refresh.executions.queries.filters import MAX_ATTRIBUTES, MAX_IDS, MAX_TRIGGER, Filter
from harbor_refresh.executions.status import MAX_VENDOR
from harbor_refresh.tasks.operations.bulk import ask, refuse_empty

router = Router(tags=["Actions on many executions"])

#: After this time a dry run answers with what it has counted so far.
COUNT_SECONDS = 2.0


class ActionIn(Body):
    """The executions that meet every given condition."""

    vendor_type: str = Field("", max_length=MAX_VENDOR, examples=["REPLICATION"])
    vendor_id: VendorId | None = None
    status: StatusName | Annotated[list[StatusName], Field(max_length=6)] = Field(
        [], description="One, or a list; any of them matches.", examples=["Running"]
    )
    trigger: str = Field("", max_length=MAX_TRIGGER)
    started_after: Moment | None = Field(None, description="With its zone: 2026-01-31T12:00:00Z.")
    started_before: Moment | None = None
    attributes: dict[str, str] = Field(
        {},
        max_length=MAX_ATTRIBUTES,
        description="Dotted paths into extra_attrs, each with the text of its value.",
        examples=[{"repository.name": "library/app"}],
    )
    ids: Annotated[list[Id], Field(max_length=MAX_IDS)] = Field([], description="Only these executions.")
    quarantined: bool | None = Field(None, description="True: only executions in quarantine. False: only others.")
    has_jobs: bool | None = Field(None, description="True: only executions with a job. False: only others.")
    all: bool = Field(False, description="Allow a filter without conditions, which selects every execution.")
    dry_run: bool = Field(False, description="Only count the executions.")

    def as_filter(self) -> Filter:
        same = self.model_dump(exclude={"status", "all", "dry_run"})
        return Filter(**same, statuses=[self.status] if isinstance(self.status, str) else self.status)


class DryRun(Schema):
    count: int
    is_complete: bool = Field(description="False: the count ran out of time, so there may be more.")


def _asked(summary: str) -> dict[str, Any]:
    asked = needs(Scope.MANAGE, summary, ExecutionDetail, 400, 409, status=202)
    asked["response"][200] = DryRun
    return asked


@router.post("/executions/stop", **_asked("Stop all executions that match a filter"))
def stop_executions(request: HttpRequest, body: ActionIn) -> Any:
    """Workers do this in the background, for the executions that exist now. 202: an execution of the type
    `BULK_ACTION`, which does the work. Follow, stop and retry it like any other; its results say how many
    executions were changed. 200: the count of a dry run."""
    return _ask(request, Word.STOP, body)


@router.post("/executions/retry", **_asked("Retry the failed jobs of all executions that match a filter"))
def retry_executions(request: HttpRequest, body: ActionIn) -> Any:
    """This works like stop. Executions without failed jobs are skipped."""
    return _ask(request, Word.RETRY, body)


@router.post("/executions/resume", **_asked("Run the stopped jobs of all executions that match a filter"))
def resume_executions(request: HttpRequest, body: ActionIn) -> Any:
    """This works like stop. Executions without stopped jobs are skipped."""
    return _ask(request, Word.RESUME, body)


@router.post("/executions/refresh", **_asked("Refresh all executions that match a filter"))
def refresh_executions(request: HttpRequest, body: ActionIn) -> Any:
    """This works like stop. Executions with a correct status and executions in quarantine are skipped."""
    return _ask(request, Word.REFRESH, body)


@router.post("/executions/delete", **_asked("Delete all ended executions that match a filter"))
def delete_executions(request: HttpRequest, body: ActionIn) -> Any:
    """This works like stop. Executions that have not ended are skipped: stop them first."""
    return _ask(request, Word.DELETE, body)


def _ask(request: HttpRequest, verb: Word, body: ActionIn) -> Any:
    chosen = body.as_filter()
    if body.dry_run:
        refuse_empty(chosen, everything=body.all)
        return Status(200, count(chosen, seconds=COUNT_SECONDS))
    return Status(202, detail(ask(verb, chosen, person_of(request), everything=body.all).pk))
