"""The executions whose status or end is not what their tasks say: finding them, in pages by id, and repair.

A repair refreshes them as the queue would, without it. A mark that Harbor lost years ago is in no queue, and
reconcile begins with what changed lately.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from harbor_refresh.executions import pacing
from harbor_refresh.executions.database import Statements
from harbor_refresh.executions.lifecycle.rollup import refresh

run = Statements(__package__)

#: A page is one transaction that locks its wrong executions alone, so Harbor waits for few rows, and not for long.
PAGE_OF_REPAIR = 1_000
MAX_NAMED = 20
EXAMPLES = 20

Progress = Callable[[int], None]


@dataclass(frozen=True)
class Wrong:
    """A wrong execution. Its ends are text, as PostgreSQL writes them; None: no end."""

    execution_id: int
    vendor_type: str
    stored: str | None
    stored_end: str | None
    true: str
    true_end: str | None


@dataclass
class Findings:
    """What a repair, or a look, has found and done. `unfinished`: executions that have not ended, so they will be
    refreshed again. `given_up`: Harbor's sweep has ended them although tasks wait, and would do so again, so they
    are left. `held`: another transaction had locked the row; it is refreshed by its own mark, or by the next
    repair. `failed`: so many were refused by the database; `first_failed` has the first of them, by id."""

    looked_at: int = 0
    unfinished: int = 0
    wrong: int = 0
    given_up: int = 0
    first_wrong: list[Wrong] = field(default_factory=list)
    repaired: int = 0
    held: int = 0
    failed: int = 0
    first_failed: dict[int, str] = field(default_factory=dict)


def repair(*, dry_run: bool = False, progress: Progress = lambda looked_at: None) -> Findings:
    """Refresh what is wrong, page by page; each page commits by itself. A dry run writes nothing.

    A statement reads one page and holds no lock. What is written meanwhile behind the page is not seen; it has
    marks of its own. A refresh decides again under the lock of the row, so what Harbor has put right meanwhile is
    left alone. A row that cannot be refreshed fails alone: it is named, and the next one follows. Locked rows are
    passed.

    If the process dies, then the pages before are committed, and the next repair finds the rest. If two do it
    at once, or Harbor's core refreshes beside it, then the row's lock decides, and the second finds nothing.
    """
    outcome, after, dangling = Findings(), 0, timedelta(hours=pacing.DANGLING_HOURS)
    while True:
        (last, _, looked_at, unfinished, *_), *rows = run(
            "find_wrong", after=after, page=PAGE_OF_REPAIR, dangling=dangling
        )
        if last is None:
            return outcome
        page = [Wrong(*row) for *row, is_given_up in rows if not is_given_up]
        outcome.looked_at += int(looked_at)
        outcome.unfinished += int(unfinished)
        outcome.given_up += len(rows) - len(page)
        outcome.wrong += len(page)
        outcome.first_wrong += page[: EXAMPLES - len(outcome.first_wrong)]
        if page and not dry_run:
            done = refresh([one.execution_id for one in page], wait=False)
            outcome.repaired += done.changed
            outcome.held += len(done.locked)
            outcome.failed += len(done.failed)
            outcome.first_failed |= list(done.failed.items())[: MAX_NAMED - len(outcome.first_failed)]
        progress(outcome.looked_at)
        after = last
