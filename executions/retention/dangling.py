"""Dangling executions: those that have no end although none of their tasks has moved for a long time."""

from dataclasses import dataclass, field
from datetime import timedelta

from harbor_refresh.executions.database import run
from harbor_refresh.executions.lifecycle.rollup import refresh

PAGE = 1_000


@dataclass(frozen=True)
class Dangling:
    """What a page found: `refreshable` have final tasks only, so a refresh ends them; `unfinished` have an
    unfinished task, or no task. `next` is the last id that was read, None after the last page."""

    looked_at: int
    refreshable: list[int] = field(default_factory=list)
    unfinished: list[int] = field(default_factory=list)
    next: int | None = None


def find(age: timedelta, after_id: int) -> Dangling:
    """Read the next page of executions, in id order."""
    looked_at, last, refreshable, unfinished = run("find_dangling", after_id=after_id, page=PAGE, age=age)[0]
    return Dangling(looked_at, refreshable, unfinished, last if looked_at == PAGE else None)


def repair(found: Dangling) -> tuple[int, list[int]]:
    """Refresh those that a refresh ends; return how many it ended, and the ids of those that it did not.

    The refresh is that of every other execution: it writes status, end and history in one statement. An
    execution that another transaction has locked, or that the database refuses to write, is left for the next
    sweep. What if the process dies, or two do it at once: a refresh decides under the row's lock, and the
    second changes nothing.
    """
    outcome = refresh(found.refreshable, wait=False)
    return outcome.changed, sorted({*outcome.failed, *outcome.locked})
