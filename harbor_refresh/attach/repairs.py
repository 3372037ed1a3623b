"""Repair: refresh the executions whose status is not what their tasks say, as the queue would, without it.

A mark that Harbor lost years ago is in no queue, and reconcile begins with what changed lately.
"""

from dataclasses import dataclass, field

from harbor_refresh.attach.wrong_statuses import Findings, Progress, pages
from harbor_refresh.executions.lifecycle.rollup import refresh

#: A page is one transaction that locks its wrong executions alone, so Harbor waits for few rows, and not for long.
PAGE = 1_000
MAX_NAMED = 20


@dataclass
class Repaired(Findings):
    """What a repair did. `held`: another transaction had locked the row; it is refreshed by its own mark, or by
    the next repair. `failures`: so many were refused by the database; `failed` has the first of them, by id."""

    repaired: int = 0
    held: int = 0
    failures: int = 0
    failed: dict[int, str] = field(default_factory=dict)


def repair(*, dry_run: bool = False, progress: Progress = lambda looked_at: None) -> Repaired:
    """Refresh what is wrong, page by page; each page commits by itself.

    A refresh decides again under the lock of the row, so what Harbor has put right meanwhile is left alone. A row
    that cannot be refreshed fails alone: it is named, and the next one follows. Locked rows are passed.

    What if the process dies: the pages before are committed, and the next repair finds the rest. What if two do it
    at once, or Harbor's core refreshes beside it: the row's lock decides, and the second finds nothing to write.
    """
    outcome = Repaired()
    for page in pages(outcome, PAGE):
        outcome.add(page)
        if page and not dry_run:
            done = refresh([one.execution_id for one in page], wait=False)
            outcome.repaired += done.changed
            outcome.held += len(done.locked)
            outcome.failures += len(done.failed)
            for pk, reason in list(done.failed.items())[: MAX_NAMED - len(outcome.failed)]:
                outcome.failed[pk] = reason
        progress(outcome.looked_at)
    return outcome
