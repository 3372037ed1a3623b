"""Refresh: bring the status of executions to what their tasks say; and compare one with them, for a person."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from time import perf_counter

from django.db import transaction

from harbor_refresh.executions.database import (
    LOCK_TIMEOUT,
    absence_translated,
    among,
    first_line,
    in_halves,
    run,
    sqlstate,
)
from harbor_refresh.executions.errors import DatabaseDown, NoSuchExecution
from harbor_refresh.executions.lifecycle import crash_points, links
from harbor_refresh.executions.models import Execution
from harbor_refresh.executions.news import counters, signals
from harbor_refresh.executions.news.after_commit import tell_changes_written_after_commit


@dataclass
class Refreshed:
    """The result of a refresh. It does not count executions that are deleted or in quarantine."""

    succeeded: int = 0
    changed: int = 0
    failed: dict[int, str] = field(default_factory=dict)
    locked: set[int] = field(default_factory=set)

    def __iadd__(self, other: "Refreshed") -> "Refreshed":
        self.succeeded += other.succeeded
        self.changed += other.changed
        self.failed |= other.failed
        self.locked |= other.locked
        return self


def refresh(execution_ids: Sequence[int], *, wait: bool = True) -> Refreshed:
    """Refresh these executions, all in one transaction if that is possible.

    1. Lock their rows in id order. If another transaction holds a row, wait for it. With `wait=False`, skip the
       row and return it as `locked`, for a caller that retries it later.
    2. Under the locks, compare each with the rollup of its tasks and write what differs, with history, and with
       the tasks that stand for these executions in their parents.
    3. If the database refuses, halve the list and refresh each half, until the row that cannot be refreshed is
       isolated. A row for whose locks the transaction waited too long is `locked`, and with `wait` it has failed.

    Raises DatabaseDown if the database is down, or if another transaction holds a whole table: neither is the
    fault of a row, and each half would wait as long again. A failure is counted after the transaction, which is
    rolled back.
    """
    outcome = Refreshed()
    if ids := sorted(set(execution_ids)):
        for part, result in in_halves(partial(_write, wait=wait), ids):
            outcome += result if isinstance(result, Refreshed) else _refused(part[0], result, wait)
    return outcome


def _write(ids: Sequence[int], wait: bool) -> Refreshed:
    began = perf_counter()
    with transaction.atomic():
        count, held = run("locks/lock_executions", ids=ids, wait=wait)[0]
        waited = perf_counter() - began
        changed, untold, nested = run("refresh_executions", ids=held, count=count, waited=waited)[0]
        if nested:
            links.carry_up(held)
        if untold:
            tell_changes_written_after_commit()
        crash_points.reach("deciding", ids)
    locked = set[int]()
    if not wait and count < len(ids):
        rows = Execution.objects.filter(among(ids), quarantine=None)
        ours = {int(one) for one in held.strip("{}").split(",") if one}
        locked.update({*rows.values_list("pk", flat=True)} - ours)
    return Refreshed(succeeded=count, changed=changed, locked=locked)


def _refused(execution_id: int, refusal: Exception, wait: bool) -> Refreshed:
    locked = {execution_id} if sqlstate(refusal) == LOCK_TIMEOUT else set[int]()
    if locked and not wait:
        return Refreshed(locked=locked)
    with absence_translated():
        counters.add({("refreshes", "result=failed"): 1})
    return Refreshed(failed={execution_id: first_line(refusal)}, locked=locked)


def refresh_at_once(execution_ids: Sequence[int]) -> None:
    """Refresh after a commit, for a caller whose own work is done. A database that is down is signalled and not
    raised; reconcile finds what was missed."""
    if not execution_ids:
        return
    try:
        outcome = refresh(execution_ids)
    except DatabaseDown as exc:
        signals.database_down.send(sender=refresh_at_once, count=len(execution_ids), error=str(exc))
    else:
        if outcome.failed:
            signals.refreshed.send(sender=refresh_at_once, outcome=outcome)


@dataclass(frozen=True)
class Comparison:
    """`true_status` is None if it has no tasks. `is_locked`: another transaction has locked its row."""

    execution_id: int
    vendor_type: str
    status: str
    end_time: datetime | None
    true_status: str | None
    true_end_time: datetime | None
    attempts: int | None
    quarantined_at: datetime | None
    reason: str | None
    is_locked: bool = False

    @property
    def is_right(self) -> bool:
        true = (self.true_status, self.true_end_time)
        return self.true_status is None or (self.status, self.end_time) == true


def compare(execution_id: int) -> Comparison:
    """Return why its status is what it is, and change nothing. Raises NoSuchExecution."""
    with transaction.atomic():
        rows = run("compare_with_tasks", id=execution_id)
        if not rows:
            raise NoSuchExecution(execution_id)
        found = Comparison(execution_id, *rows[0])
        free = Execution.objects.filter(pk=execution_id).select_for_update(no_key=True, skip_locked=True).first()
    return replace(found, is_locked=free is None and found.reason is None)
