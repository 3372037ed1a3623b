"""Refresh: bring the status of executions to what their tasks say."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from django.db import DatabaseError, transaction

from executions import points, signals
from executions.database import absence_translated, first_line, run
from executions.errors import DatabaseAway


@dataclass
class Refreshed:
    """What a refresh did. Executions that are gone or in quarantine are in none of these."""

    succeeded: int = 0
    changed: int = 0
    failed: dict[int, str] = field(default_factory=dict)
    busy: set[int] = field(default_factory=set)

    def __iadd__(self, other: "Refreshed") -> "Refreshed":
        self.succeeded += other.succeeded
        self.changed += other.changed
        self.failed |= other.failed
        self.busy |= other.busy
        return self


def refresh(execution_ids: Sequence[int], *, wait: bool = True) -> Refreshed:
    """Refresh these executions, all in one transaction if that is possible.

    1. Lock their rows in id order. Wait for those that somebody else has locked, or, if told not to, leave
       them out as `busy`: for a caller that comes back to them.
    2. Under the locks, compare each with the rollup of its tasks and write what differs, with history.
    3. If the database refuses, halve and try each half, until the row that cannot be refreshed stands
       alone and fails alone.

    Raises DatabaseAway if there is no database to refuse anything.
    """
    ids = sorted(set(execution_ids))
    if not ids:
        return Refreshed()
    try:
        with absence_translated(), transaction.atomic():
            count, locked = run("lock_executions" if wait else "lock_free_executions", ids=ids)[0]
            changed = run("refresh_executions", ids=locked)[0][0]
            points.reach("deciding", ids)
    except DatabaseError as exc:
        if len(ids) == 1:
            return Refreshed(failed={ids[0]: first_line(exc)})
        middle = len(ids) // 2
        outcome = refresh(ids[:middle], wait=wait)
        outcome += refresh(ids[middle:], wait=wait)
        return outcome
    busy = set() if wait or count == len(ids) else _refreshable(ids) - _read(locked)
    return Refreshed(succeeded=count, changed=changed, busy=busy)


def _read(array: str) -> set[int]:
    """The ids in the text of a bigint[]. It is read only when it must be: mostly it just goes back."""
    return {int(one) for one in array.strip("{}").split(",") if one}


def _refreshable(ids: list[int]) -> set[int]:
    with absence_translated():
        return {row[0] for row in run("find_refreshable", ids=ids)}


def refresh_at_once(execution_ids: Sequence[int]) -> None:
    """Refresh after a commit, for a caller whose own work is done: a database that is away is told, not
    raised. Reconcile finds what was missed."""
    try:
        outcome = refresh(execution_ids)
    except DatabaseAway as exc:
        signals.database_away.send(sender=refresh_at_once, count=len(execution_ids), error=str(exc))
    else:
        if outcome.failed:
            signals.refreshed.send(sender=refresh_at_once, outcome=outcome)
