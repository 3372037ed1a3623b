"""Pages: how many items, and the cursor, which callers only pass on."""

from typing import Annotated

from pydantic import Field

from executions.api.problems import Problem
from executions.api.schemas import Given
from executions.status import MAX_ID


class PageIn(Given):
    limit: int = Field(100, ge=1, le=1_000, description="The most items of the page.")
    cursor: Annotated[str, Field(max_length=20)] = Field(
        "",
        examples=["81"],
        description="`next` of the page before it.",
        json_schema_extra={"pattern": "^[0-9]{0,18}$"},
    )

    @property
    def place(self) -> int | None:
        """The id at which the page before has ended; None for the first page."""
        if not self.cursor:
            return None
        if not self.cursor.isascii() or not self.cursor.isdecimal() or int(self.cursor) > MAX_ID:
            raise Problem(400, "It cannot be used", "the cursor is not one that a page has named as its `next`")
        return int(self.cursor)


def cursor(place: int | None) -> str | None:
    return None if place is None else str(place)
