"""The sweep: delete what retention does not keep, and forget old rows. One at a time."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from math import inf
from typing import Any

from harbor_refresh.executions.attached.attachment import is_attached
from harbor_refresh.executions.conf import intake_settings
from harbor_refresh.executions.database import absence_translated, first_line, in_halves
from harbor_refresh.executions.errors import LeaseLost, RefreshError
from harbor_refresh.executions.lifecycle import crash_points, retention
from harbor_refresh.executions.lifecycle.deletion import delete_final
from harbor_refresh.executions.lifecycle.housekeeping import HOUSEKEEPING, forget_orphans, shorten_histories
from harbor_refresh.executions.lifecycle.lease import Held, Lease
from harbor_refresh.executions.lifecycle.retention import Position, Retention
from harbor_refresh.executions.news import signals

#: After each transaction the sweep rests as long as it took, at most so long. So reports and refreshes have the
#: database to themselves for half of the time.
LONGEST_REST_SECONDS = 0.2

EXECUTIONS, HISTORY, ORPHANS = "executions", "history", "rows of deleted executions"


@dataclass
class Swept:
    """What a sweep did. `passed` executions are not kept and could not be deleted; `example` is one of them, with
    the reason. `forgotten`: old rows, by the name of the step. `failed`: why a step was left early.

    `held`: another sweep is running, so this one did nothing. `lease_lost`: this one lost its lease and ended
    early. `stopped_at`: its time was up in this step, after this position; None if it is complete.
    """

    executions: int = 0
    tasks: int = 0
    passed: int = 0
    example: str = ""
    forgotten: dict[str, int] = field(default_factory=dict)
    failed: dict[str, Exception] = field(default_factory=dict)
    held: Held | None = None
    lease_lost: bool = False
    stopped_at: tuple[str, tuple[str | int, ...]] | None = None


Progress = Callable[[Swept], None]
#: Does a page; returns the position after it, or None after the last page.
Step = Callable[..., tuple[Any, ...] | None]


def sweep(
    step: str = "",
    position: tuple[Any, ...] = (),
    *,
    seconds: float = inf,
    progress: Progress = lambda outcome: None,
) -> Swept:
    """Sweep, page by page; each page commits by itself.

    1. Take the lease, which each transaction extends before it deletes.
    2. Delete the executions that retention does not keep (retention.py), in short transactions that wait for no
       lock. One that the database refuses to delete, because a row of the project names it, is passed.
    3. Shorten long histories, and delete the old rows of other tables (housekeeping.py).

    Attached to a running Harbor, our rows of executions that it has deleted are deleted instead of 2. A step that
    fails is left, and the next one is done. With `seconds` it stops after the transaction in which they are
    over, and `stopped_at` says where; a call with that goes on there. If the process dies, its lease expires.
    """
    outcome = Swept()
    lease = Lease("sweep")
    try:
        with lease.taken() as outcome.held:
            if not outcome.held:
                _Sweep(outcome, lease, progress, seconds).work(step, position)
    except LeaseLost:
        outcome.lease_lost = True
    finally:
        signals.swept.send(sender=sweep, outcome=outcome)
    return outcome


class _Sweep:
    """The steps of one sweep."""

    def __init__(self, outcome: Swept, lease: Lease, progress: Progress, seconds: float) -> None:
        self.ends_at = time.monotonic() + seconds
        self.rules = Retention.of_settings()
        self.outcome, self.lease, self.progress = outcome, lease, progress
        self.steps: dict[str, Step] = {}
        if is_attached():
            self.steps |= {ORPHANS: self._forgets(ORPHANS, forget_orphans)}
        elif not self.rules.keeps_everything:
            self.steps |= {EXECUTIONS: self._executions}
        if days := intake_settings().history_days:
            self.steps |= {HISTORY: self._forgets(HISTORY, partial(shorten_histories, timedelta(days=days)))}
        self.steps |= {chore.name: self._forgets(chore.name, chore.page) for chore in HOUSEKEEPING}

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self.ends_at

    def work(self, first: str, begin: tuple[Any, ...]) -> None:
        names, has_begun = list(self.steps), False
        for name in names[names.index(first) if first in names else 0 :]:
            position: tuple[Any, ...] | None = begin if name == first else ()
            while position is not None:
                if has_begun and self.is_over:
                    self.outcome.stopped_at = name, position
                    return
                position, has_begun = self._page(name, position), True
                self.progress(self.outcome)

    def _page(self, step: str, position: tuple[Any, ...]) -> tuple[Any, ...] | None:
        try:
            with absence_translated():
                return self.steps[step](*position)
        except RefreshError:  # the database is down, or another sweep has the lease
            raise
        except Exception as exc:
            self.outcome.failed[step] = exc
            return None

    def _executions(self, *position: Any) -> tuple[Any, ...] | None:
        self.lease.extend()
        with self._rest_after():
            page = retention.find(self.rules, Position(*position))
        refused: dict[int, str] = {}
        before = self.outcome.executions
        for batch in page.batches():
            for ids, deleted in in_halves(self._delete, batch):
                if isinstance(deleted, Exception):
                    refused[ids[0]] = first_line(deleted)
                else:
                    self.outcome.executions += deleted[0]
                    self.outcome.tasks += deleted[1]
                    crash_points.reach("swept", ids)
            self.progress(self.outcome)
            # the next message reads this page again, and would meet again what was refused, or is locked
            if self.is_over and not refused and self.outcome.executions > before:
                return Position(*position)
        passed = {pk: f"a row names it in {column}" for pk, column in page.passed.items()} | refused
        self.outcome.passed += len(passed)
        self.outcome.example = self.outcome.example or next((f"{pk}: {why}" for pk, why in passed.items()), "")
        return page.next

    def _delete(self, ids: Sequence[int]) -> tuple[int, int]:
        with self._rest_after(), self.lease.fenced():
            return delete_final(ids)

    def _forgets(self, step: str, delete: Callable[[int], tuple[int, int | None]]) -> Step:
        """Return a step that deletes old rows: `delete` returns how many, and the id to go on after."""

        def page(after_id: int = 0) -> tuple[int] | None:
            with self._rest_after(), self.lease.fenced():
                deleted, after = delete(after_id)
            if deleted:
                self.outcome.forgotten[step] = self.outcome.forgotten.get(step, 0) + deleted
            return None if after is None else (after,)

        return page

    @contextmanager
    def _rest_after(self) -> Iterator[None]:
        """Rest as long as the block took."""
        began = time.monotonic()
        try:
            yield
        finally:
            time.sleep(min(time.monotonic() - began, LONGEST_REST_SECONDS))
