"""Halving: what the database refuses for one of many items is done for all the others."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from django.db import DatabaseError

from harbor_refresh.executions.database import absence_translated

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_halves(
    do: Callable[[Sequence[Item]], Result],
    items: Sequence[Item],
    refusals: tuple[type[Exception], ...] = (DatabaseError,),
) -> Iterator[tuple[Sequence[Item], Result | Exception]]:
    """Do it with all items, in one transaction of `do`. If the database refuses, do it with each half, until a
    refused item is alone. Yields each part, in order, with its result, or a refused item with the error. Raises
    DatabaseAway if the database is away, because no item is at fault.

    A deferred constraint refuses at the commit, so it is isolated only if the caller is in no transaction.
    """
    try:
        with absence_translated():
            result = do(items)
    except refusals as exc:
        if len(items) <= 1:
            yield items, exc
            return
        middle = len(items) // 2
        yield from in_halves(do, items[:middle], refusals)
        yield from in_halves(do, items[middle:], refusals)
    else:
        yield items, result
