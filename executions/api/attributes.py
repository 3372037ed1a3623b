"""Attributes in the query of a list: `attribute=path=value`."""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from harbor_refresh.executions.errors import Refused

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
    return dict(_pair(one) for one in given)


def _pair(text: str) -> tuple[str, str]:
    path, is_there, value = text.partition("=")
    if not is_there:
        raise Refused("attribute takes `path=value`")
    return path, value
