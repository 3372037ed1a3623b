"""Tally: what a pass over the jobs did, by what it found; and how a pass goes on past what it cannot settle."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from django.db import DatabaseError

from executions import signals
from executions.database import absence_translated, first_line


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
