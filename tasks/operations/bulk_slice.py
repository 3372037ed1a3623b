"""A slice: what one process does of an action, before it releases the lease."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from time import monotonic

from django.db import DatabaseError, transaction

from harbor_refresh.executions.actions.action_lease import Done, HeldAction
from harbor_refresh.executions.actions.action_pages import count, page_after
from harbor_refresh.executions.database import first_line
from harbor_refresh.executions.errors import Contended, Refused
from harbor_refresh.executions.lifecycle.halving import in_halves
from harbor_refresh.executions.models.operations import State
from harbor_refresh.executions.queries.filters import Filter
from harbor_refresh.executions.text import said_by
from harbor_refresh.tasks.database import run
from harbor_refresh.tasks.operations.bulk_verbs import VERBS, BulkVerb
from harbor_refresh.tasks.queue.connection import absence_remembered
from harbor_refresh.tasks.queue.sets import sized_pages

COUNT_SECONDS = 5.0
#: Processes that may end without progress at the same place. From the second on, each execution is done alone.
MAX_ATTEMPTS = 5


@dataclass(frozen=True)
class Result:
    """The state that the action has after the slice, and why it has failed."""

    state: State
    error: str = ""


@dataclass
class Slice:
    """`seconds`: the time of the slice; None: until the end. `on_page` is called after each commit, and returns
    whether the caller wants the action to stop. `troubles`: why executions failed, one text for each."""

    held: HeldAction
    seconds: float | None
    on_page: Callable[[], bool]
    troubles: list[str] = field(default_factory=list)

    def run(self) -> Result:
        action = self.held.action
        if action.stop_asked:
            return Result(State.STOPPED)
        if action.attempts > MAX_ATTEMPTS:
            reason = f"{MAX_ATTEMPTS} processes ended while they worked on the executions after {action.cursor}"
            return Result(State.FAILED, reason)
        try:
            chosen, verb = Filter.from_json(action.filter), VERBS[action.verb]
        except (Refused, KeyError) as exc:  # another release of this program has written it
            return Result(State.FAILED, f"this release cannot read its filter or verb: {said_by(exc)}")
        self._count(chosen)
        deadline = None if self.seconds is None else monotonic() + self.seconds
        for cursor, is_asked in self._pages(chosen, verb):
            is_interrupted = self.on_page()
            if cursor == action.highest:
                break
            if is_interrupted or is_asked:
                return Result(State.STOPPED)
            if deadline is not None and monotonic() > deadline:
                return Result(State.RUNNING)
        return Result(State.DONE)

    def _count(self, chosen: Filter) -> None:
        action = self.held.action
        if action.total is None and not action.cursor:
            counted = count(chosen, highest=action.highest, seconds=COUNT_SECONDS)
            if counted.is_complete:
                self.held.note_total(counted.count)

    def _pages(self, chosen: Filter, verb: BulkVerb) -> Iterator[tuple[int, bool]]:
        """Do page after page. Yields the cursor after each commit, and whether the action was asked to stop."""
        action = self.held.action
        cursor = action.cursor
        while cursor < action.highest:
            page = page_after(cursor, chosen, highest=action.highest, size=verb.page)
            if action.attempts > 1:
                portions = [[pk] for pk in page.ids]
            else:
                weights = verb.weights(page.ids)
                portions = list(sized_pages(((pk, weights.get(pk, 0)) for pk in page.ids), verb.heaviest))
            *first, last = portions or [[]]
            for portion in first:
                yield from self._do(verb, portion, portion[-1])
            yield from self._do(verb, last, page.cursor)
            cursor = page.cursor

    def _do(self, verb: BulkVerb, ids: Sequence[int], cursor: int) -> Iterator[tuple[int, bool]]:
        """Do these in one transaction, or in several if the database refuses that, so that only those fail that
        cannot be done."""

        def cursor_after(part: Sequence[int]) -> int:
            return cursor if part[-1:] == ids[-1:] else part[-1]

        def commit(part: Sequence[int]) -> bool:
            return self._commit(verb, part, cursor_after(part))

        for part, is_asked in in_halves(commit, ids, (DatabaseError, Contended)):
            if isinstance(is_asked, Exception):
                failed = self._failed(f"execution {part[0]}: {first_line(is_asked)}")
                yield cursor_after(part), self.held.note(cursor_after(part), failed)
            else:
                yield cursor_after(part), is_asked

    def _commit(self, verb: BulkVerb, ids: Sequence[int], cursor: int) -> bool:
        """Act and note the progress in one transaction. Several executions wait only briefly for a locked row,
        because their own locks are held meanwhile."""
        with absence_remembered(), transaction.atomic():
            if len(ids) > 1:
                run("wait_briefly")
            done = verb.act(ids) if ids else Done()
            is_asked = self.held.note(cursor, done)
        self.troubles += done.errors
        return is_asked

    def _failed(self, reason: str) -> Done:
        self.troubles.append(reason)
        return Done(failed=1, errors=(reason,))
