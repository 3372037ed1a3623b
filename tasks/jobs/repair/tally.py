"""Tally: what a pass over the jobs did, by what it found; and how it goes on past what the database refuses."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from django.db import DatabaseError

from executions.database import absence_translated, first_line
from tasks import signals


@dataclass(kw_only=True)
class Tally:
    """Numbers, each added to by the pass. True if it found anything."""

    unreadable: int = 0
    troubled: int = 0

    def __bool__(self) -> bool:
        return any(getattr(self, one.name) for one in fields(self))


T = TypeVar("T", bound=Tally)


def guarded(total: T, settle: Callable[..., None], *page: Any) -> None:
    """What the database refuses of one page is no reason to leave the others. If it is away: DatabaseAway."""
    try:
        with absence_translated():
            settle(total, *page)
    except DatabaseError as exc:
        total.troubled += 1
        signals.troubled.send(sender=settle, error=first_line(exc))


Item = TypeVar("Item")


def in_halves(do: Callable[[Sequence[Item]], None], items: Sequence[Item]) -> list[Item]:
    """Do it with all of them; if the database refuses, with each half, until an item that it refuses stands alone.
    Such items are returned, and each is told. If the database is away: DatabaseAway."""
    if not items:
        return []
    try:
        with absence_translated():
            do(items)
    except DatabaseError as exc:
        if len(items) == 1:
            signals.troubled.send(sender=do, error=first_line(exc))
            return list(items)
        middle = len(items) // 2
        return in_halves(do, items[:middle]) + in_halves(do, items[middle:])
    return []
