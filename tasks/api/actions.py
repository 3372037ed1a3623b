"""Actions on many executions over HTTP: each is an execution itself."""

from typing import Annotated, Any

from django.http import HttpRequest
from ninja import Router, Schema, Status
from pydantic import Field

from harbor_refresh.executions.api.access import Scope
from harbor_refresh.executions.api.answers import detail, needs
from harbor_refresh.executions.api.schemas import Body, Conditions, ExecutionDetail, Id, StatusName
from harbor_refresh.executions.news.audit import Word, person_of
from harbor_refresh.executions.queries.chosen_pages import count
from harbor_refresh.executions.queries.filters import MAX_ATTRIBUTES, MAX_IDS, Filter
from harbor_refresh.tasks.operations.bulk import ask, refuse_empty

router = Router(tags=["Actions on many executions"])

#: After this time a dry run answers with what it has counted so far.
COUNT_SECONDS = 2.0


class ActionIn(Conditions, Body):
    """The executions that meet every given condition."""

    status: StatusName | Annotated[list[StatusName], Field(max_length=6)] = Field(
        [], description="One, or a list; any of them matches.", examples=["Running"]
    )
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


#: What each operation does, and what it says besides DESCRIPTION.
OPERATIONS = {
    Word.STOP: ("Stop all executions", ""),
    Word.RETRY: ("Retry the failed jobs of all executions", "Executions without failed jobs are skipped."),
    Word.RESUME: ("Run the stopped jobs of all executions", "Executions without stopped jobs are skipped."),
    Word.REFRESH: ("Refresh all executions", "Executions that are right or in quarantine are skipped."),
    Word.DELETE: ("Delete all ended executions", "Executions that have not ended are skipped: stop them first."),
}
DESCRIPTION = (
    "Workers do this in the background, for the executions that exist now. 202: an execution of the type "
    "`BULK_ACTION`, which does the work. Follow, stop and retry it like any other; its results say how many "
    "executions were changed. 200: the count of a dry run."
)


def _add(verb: Word, summary: str, skipped: str) -> None:
    asked = needs(Scope.MANAGE, f"{summary} that match a filter", ExecutionDetail, 400, 409, status=202)
    asked["response"][200] = DryRun

    def act(request: HttpRequest, body: ActionIn) -> Any:
        chosen = body.as_filter()
        if body.dry_run:
            refuse_empty(chosen, everything=body.all)
            return Status(200, count(chosen, seconds=COUNT_SECONDS))
        return Status(202, detail(ask(verb, chosen, person_of(request), everything=body.all).pk))

    act.__name__ = f"{verb}_executions"  # the description names the operation by it
    router.post(f"/executions/{verb}", description=f"{DESCRIPTION} {skipped}".strip(), **asked)(act)


for verb, words in OPERATIONS.items():
    _add(verb, *words)
