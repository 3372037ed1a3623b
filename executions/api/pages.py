"""Lists: the items of a page, the cursor, which callers only pass on, and attributes that the items must have."""

from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any, Self

from django.db.models import QuerySet
from django.http import HttpResponse
from pydantic import BaseModel, Field, TypeAdapter, ValidationInfo, model_validator
from pydantic_core import to_json

from harbor_refresh.executions.api.schemas import Given
from harbor_refresh.executions.errors import Refused
from harbor_refresh.executions.status import MAX_ID

#: The most items of a page. Of 100 pages of 1,000 items, one took more than 50 ms.
MAX_ITEMS = 500


class PageIn(Given):
    limit: int = Field(100, ge=1, le=MAX_ITEMS, description="The maximum number of items on the page.")
    cursor: Annotated[str, Field(max_length=20)] = Field(
        "",
        examples=["81"],
        description="The value `next` of the previous page.",
        json_schema_extra={"pattern": "^[0-9]{0,18}$"},
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
        if not self.cursor:
            return None
        if not self.cursor.isascii() or not self.cursor.isdecimal() or int(self.cursor) > MAX_ID:
            raise Refused("the cursor is not one that a page has named as its `next`")
        return int(self.cursor)


def oldest_first(rows: QuerySet[Any], query: PageIn, schema: type[BaseModel], by: str = "pk") -> HttpResponse:
    """Answer the page of these rows that follows the place, in the order of a column."""
    return _page(rows.filter(**{f"{by}__gt": query.place or 0}).order_by(by), query, schema, by)


def newest_first(rows: QuerySet[Any], query: PageIn, schema: type[BaseModel]) -> HttpResponse:
    if query.place is not None:
        rows = rows.filter(pk__lt=query.place)
    return _page(rows.order_by("-pk"), query, schema, "pk")


def _page(rows: QuerySet[Any], query: PageIn, schema: type[BaseModel], by: str) -> HttpResponse:
    items = list(rows[: query.limit])
    return answer(items, schema, getattr(items[-1], by) if len(items) == query.limit else None)


def answer(items: Sequence[Any], schema: type[BaseModel], place: int | None) -> HttpResponse:
    """Answer a page. Pydantic writes it from the rows at once. Ninja would make a model, a dict and then the text
    of each of up to 500 items."""
    found = _adapter(schema).validate_python(items, from_attributes=True)
    text = _adapter(schema).dump_json(found, by_alias=True)
    next_page = to_json(None if place is None else str(place))
    return HttpResponse(b'{"items":%b,"next":%b}' % (text, next_page), content_type="application/json")


@cache
def _adapter(schema: type[BaseModel]) -> TypeAdapter[list[Any]]:
    return TypeAdapter(list[schema])  # type: ignore[valid-type]


#: Described a little narrower than Filter takes it.
Pair = Annotated[
    str, Field(json_schema_extra={"pattern": r"^[^=.\x00]+(\.[^=.\x00]+){0,9}=[^\x00]*$", "maxLength": 200})
]
AttributePairs = list[Pair]
PAIRS: Any = Field(
    [],
    max_length=5,
    examples=[["repository.name=library/app"]],
    description="`path=value`: a dotted path into extra_attrs, and the text there. Each of several must match.",
)


def pairs(given: Sequence[str]) -> dict[str, str]:
    """Return the texts by their paths."""
    if not all("=" in one for one in given):
        raise Refused("attribute takes `path=value`")
    return dict(one.split("=", 1) for one in given)
