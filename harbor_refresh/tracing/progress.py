"""The steps inside a refresh, `write` and `complete`, and what they find out about the followed executions."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from time import time_ns
from typing import Any

from django.db import DatabaseError, InterfaceError, transaction

from harbor_refresh.executions.database import Statements
from harbor_refresh.tasks.queue.claim import Claim
from harbor_refresh.tracing import catalogue
from harbor_refresh.tracing.spans import CurrentSpan, begun, current

run = Statements(__package__)


@dataclass(frozen=True)
class Change:
    """A row of the history that this refresh has written."""

    revision: int
    from_status: str
    to_status: str

    @property
    def attributes(self) -> dict[str, Any]:
        return {
            catalogue.FROM: self.from_status,
            catalogue.TO: self.to_status,
            catalogue.REVISION: self.revision,
        }


@dataclass
class Progress:
    """What the steps inside a refresh find out about the executions that are followed."""

    followed: Sequence[int]
    changes: dict[int, Change] = field(default_factory=dict)
    #: When the completion began and ended, of which executions, and how many had been recovered.
    completions: list[tuple[int, int, frozenset[int], int]] = field(default_factory=list)


#: The refresh that this thread is in.
of_this_refresh: ContextVar[Progress | None] = ContextVar("harbor_refresh_traced_refresh", default=None)


class WriteSpan(CurrentSpan):
    """The span ends inside the transaction, so it can read what this transaction has written, and only that."""

    def __init__(self, progress: Progress, execution_ids: Sequence[int]) -> None:
        super().__init__(begun("write", {catalogue.EXECUTIONS: len(execution_ids)}))
        self._progress = progress
        self._ids = set(execution_ids)

    def end(self, notes: Mapping[str, Any], error: BaseException | None) -> None:
        changed = notes.get("changed", 0)
        self.span.set_attribute(catalogue.CHANGED, changed)
        super().end(notes, error)
        followed = [one for one in self._progress.followed if one in self._ids]
        if error is None and changed and followed:
            with (
                suppress(DatabaseError, InterfaceError),
                transaction.atomic(),
            ):  # a savepoint: the refresh does not fail with it
                for execution_id, *row in run("find_written_changes", ids=followed):
                    self._progress.changes[execution_id] = Change(*row)


def begin_write(execution_ids: Sequence[int]) -> WriteSpan | None:
    """A write outside a refresh, such as that of a stop, has no span."""
    progress = of_this_refresh.get()
    return WriteSpan(progress, execution_ids) if progress and (progress.followed or current()) else None


@dataclass(frozen=True)
class Completion:
    progress: Progress
    claim: Claim
    began: int

    def end(self, notes: Mapping[str, Any], error: BaseException | None) -> None:
        if error is None:
            ids = frozenset(self.claim.ids).intersection(self.progress.followed)
            self.progress.completions.append((self.began, time_ns(), ids, notes.get("outlived", 0)))


def begin_complete(claim: Claim) -> Completion | None:
    progress = of_this_refresh.get()
    return Completion(progress, claim, time_ns()) if progress and progress.followed else None
