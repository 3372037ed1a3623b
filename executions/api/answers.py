"""What operations share: who may call them, what they answer, pages of lists, and idempotency keys."""

import hashlib
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Self

from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from ninja import Header
from pydantic import BaseModel, Field, StringConstraints, ValidationInfo, model_validator

from harbor_refresh.executions.api.access import Scope, may
from harbor_refresh.executions.api.problems import Problem, ProblemDetails
from harbor_refresh.executions.api.schemas import ExecutionDetail, ExecutionOut, Given, as_dict, page_of
from harbor_refresh.executions.database import among
from harbor_refresh.executions.errors import NoSuchExecution
from harbor_refresh.executions.models import Execution, IdempotencyKey
from harbor_refresh.executions.queries import listing
from harbor_refresh.executions.queries.filters import by_path
from harbor_refresh.executions.queries.progress import progress


def needs(
    scope: Scope, summary: str, good: type[BaseModel] | None, *problems: int, status: int = 200
) -> dict[str, Any]:
    """What an operation needs: a token with the scope; its summary; and its answers: the good one, and the
    problems, each of the one shape."""
    bad = dict.fromkeys((401, 403, 422, 429, 503, *problems), ProblemDetails)
    return {"auth": may[scope], "summary": summary, "response": {status: good, **bad}}


def require_execution(execution_id: int) -> None:
    if not Execution.objects.filter(pk=execution_id).exists():
        raise NoSuchExecution(execution_id)


def detail(execution_id: int) -> ExecutionDetail:
    execution = Execution.objects.select_related("quarantine").filter(pk=execution_id).first()
    if execution is None:
        raise NoSuchExecution(execution_id)
    made = progress(execution_id)
    quarantine = getattr(execution, "quarantine", None)
    return ExecutionDetail(
        **as_dict(execution, ExecutionOut),
        counts=made.counts,
        tasks=made.total,
        progress=made.share,
        quarantine=quarantine.reason if quarantine else None,
    )


MAX_KEY = 200

Key = Annotated[
    str | None,
    StringConstraints(min_length=1, max_length=MAX_KEY, pattern=r"^[!-~]+$"),
    Header(
        None,
        alias="Idempotency-Key",
        description="Repeat a failed request with the same key: it takes effect only once.",
    ),
]


def once(request: HttpRequest, key: str | None, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Call `make` and keep its answer, in one transaction; if the caller has used this key, return that answer.

    If two requests with one key come at once, then the second waits at the key's row until the first has
    committed, and gets its answer. If the first fails, then neither its key nor its work is there. If the
    process dies before the answer is sent, then the next request with this key gets it.
    """
    if key is None:
        return make()
    caller = f"token {request.auth.pk}"  # type: ignore[attr-defined]
    digest = hashlib.sha256(b"\n".join((request.path.encode(), request.body))).digest()
    with transaction.atomic():
        mine = IdempotencyKey(caller=caller, key=key, request=digest)
        same = IdempotencyKey.objects.select_for_update().filter(caller=caller, key=key)
        row = None
        while row is None:  # between the two statements, the sweep may delete an old key
            IdempotencyKey.objects.bulk_create([mine], ignore_conflicts=True)
            row = same.first()
        if bytes(row.request) != digest:
            raise Problem(422, "The key was used", "this Idempotency-Key was used for another request")
        if row.answer is None:
            row.answer = make()
            row.save(update_fields=["answer"])
    answer: dict[str, Any] = row.answer
    return answer


#: The most items of a page. Of 100 pages of 1,000 items, one took more than 50 ms.
MAX_ITEMS = 500


class PageIn(Given):
    limit: int = Field(100, ge=1, le=MAX_ITEMS, description="The maximum number of items on the page.")
    cursor: str = Field(
        "", pattern="^[0-9]{0,18}$", examples=["81"], description="The value `next` of the previous page."
    )

    @model_validator(mode="after")
    def refuse_unknown(self, info: ValidationInfo) -> Self:
        """Refuse a parameter that is misspelt: to ignore a filter would answer with everything."""
        given = info.context["request"].GET if info.context else {}
        if unknown := sorted(given.keys() - type(self).model_fields.keys()):
            known = ", ".join(type(self).model_fields)
            raise ValueError(f"`{unknown[0][:50]}` is no parameter here; there are {known}")
        return self

    @property
    def place(self) -> int | None:
        """The id at which the page before has ended; None for the first page."""
        return int(self.cursor) if self.cursor else None


def page(rows: QuerySet[Any], query: PageIn, schema: type[BaseModel], by: str = "pk") -> HttpResponse:
    """Answer the page of these rows that follows the place, in the order of a column; `-pk`: the newest first."""
    column = by.removeprefix("-")
    if query.place is not None:
        rows = rows.filter(**{f"{column}__{'gt' if by == column else 'lt'}": query.place})
    found = list(rows.order_by(by)[: query.limit])
    return answer(found, schema, getattr(found[-1], column) if len(found) == query.limit else None)


def page_of_tasks(
    execution_id: int,
    rows: QuerySet[Any],
    query: PageIn,
    schema: type[BaseModel],
    statuses: Sequence[str] = (),
    *,
    is_filtered: bool = False,
    shown: Callable[[Any], Any] = lambda row: row,
) -> HttpResponse:
    """Answer the page of those rows that have the ids of tasks of the execution. It ends after COMPARED tasks, or
    after as many as the limit if these are enough. `shown` makes an item of a row."""
    for compared in (listing.COMPARED,) if is_filtered else (query.limit, listing.COMPARED):
        ids = listing.tasks_after(execution_id, query.place, compared, statuses)
        found = list(rows.filter(among(ids)).order_by("pk")[: query.limit])
        if len(found) == query.limit or len(ids) < compared:
            break
    if not ids:
        require_execution(execution_id)
    until = ids[-1] if len(ids) == compared else None
    return answer(list(map(shown, found)), schema, found[-1].pk if len(found) == query.limit else until)


def answer(items: Sequence[Any], schema: type[BaseModel], place: int | None) -> HttpResponse:
    """Answer a page. Pydantic writes it from the rows at once. Ninja would make a model, a dict and then the text
    of each of up to 500 items."""
    given = {"items": items, "next": None if place is None else str(place)}
    found = page_of(schema).model_validate(given, from_attributes=True)
    return HttpResponse(found.model_dump_json(by_alias=True), content_type="application/json")


#: The length is described a little narrower than Filter takes it.
Pair = Annotated[
    str, Field(pattern=r"^[^=.\x00]+(\.[^=.\x00]+){0,9}=[^\x00]*$", json_schema_extra={"maxLength": 200})
]
TOLD = "`path=value`: a dotted path into extra_attrs, and the text there. Each of several must match."
AttributePairs = Annotated[
    list[Pair], Field(max_length=5, examples=[["repository.name=library/app"]], description=TOLD)
]


def pairs(given: AttributePairs) -> dict[str, str]:
    """Return the texts by their paths."""
    return by_path(one.split("=", 1) for one in given)
