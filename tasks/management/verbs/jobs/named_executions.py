"""The executions that a command names, and the named executions that it cannot act on."""

from collections.abc import Container, Iterable
from dataclasses import replace
from typing import Any

from harbor_refresh.tasks.id_list import id_list
from harbor_refresh.tasks.jobs.overview.selection import Selection

SHOWN = 20


def without_deleted(chosen: Selection, tried: Iterable[int], done: Container[int]) -> Selection:
    """Move executions that were deleted before the command reached them to `unknown`."""
    return replace(chosen, unknown=sorted([*chosen.unknown, *(pk for pk in tried if pk not in done)]))


def as_data(chosen: Selection) -> dict[str, Any]:
    return {"without_jobs": list(chosen.without_jobs), "unknown": list(chosen.unknown)}


def failure(chosen: Selection) -> str:
    """Name the executions that the command could not act on; it has acted on the rest."""
    return "; ".join(
        f"{what} {id_list(ids, at_most=SHOWN)}"
        for what, ids in (
            ("there is no execution", chosen.unknown),
            ("no jobs belong to execution", chosen.without_jobs),
        )
        if ids
    )
