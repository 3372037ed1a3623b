"""What `stop` and `retry` have in common: executions are named, and some of them cannot be meant."""

from collections.abc import Container, Iterable
from dataclasses import replace
from typing import Any

from django.core.management.base import CommandParser

from tasks.jobs.overview.selection import Selection
from tasks.management.verbs.numbers import at_least_one, some


def arguments(parser: CommandParser) -> None:
    parser.add_argument("ids", nargs="+", type=at_least_one, metavar="EXECUTION_ID", help="these executions")


def without_the_deleted(chosen: Selection, meant: Iterable[int], done: Container[int]) -> Selection:
    """Those that were deleted before it was their turn are unknown."""
    return replace(chosen, unknown=sorted([*chosen.unknown, *(pk for pk in meant if pk not in done)]))


def as_data(chosen: Selection) -> dict[str, Any]:
    return {"without_jobs": list(chosen.without_jobs), "unknown": list(chosen.unknown)}


def failure(chosen: Selection) -> str:
    """The others have been seen to."""
    return "; ".join(
        f"{what} {some(ids)}"
        for what, ids in (
            ("there is no execution", chosen.unknown),
            ("no jobs belong to execution", chosen.without_jobs),
        )
        if ids
    )
