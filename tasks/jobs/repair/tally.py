"""Tally: the results of a pass over the jobs, and how the pass goes on after the database refuses something."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from django.db import DatabaseError

from harbor_refresh.executions.database import absence_translated, first_line
from harbor_refresh.executions.lifecycle.halving import in_halves
from harbor_refresh.tasks import signals


@dataclass(kw_only=True)
class Tally:
    """Counters of one pass. True if the pass found anything."""

    unreadable: int = 0
    troubled: int = 0

    def __bool__(self) -> bool:
        return any(getattr(self, one.name) for one in fields(self))


T = TypeVar("T", bound=Tally)


def guarded(total: T, settle: Callable[..., None], *page: Any) -> None:
    """Settle a page. If the database refuses it, log that and go on. If the database is away: DatabaseAway."""
    try:
        with absence_translated():
            settle(total, *page)
    except DatabaseError as exc:
        total.troubled += 1
        signals.troubled.send(sender=settle, error=first_line(exc))


Item = TypeVar("Item")


def refused_of(do: Callable[[Sequence[Item]], None], items: Sequence[Item]) -> list[Item]:
    """Do it with all items that the database does not refuse; return the refused ones, each of which is logged."""
    refused: list[Item] = []
    for part, refusal in in_halves(do, items) if items else ():
        if refusal:
            signals.troubled.send(sender=do, error=first_line(refusal))
            refused += part
    return refused
