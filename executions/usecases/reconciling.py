"""Reconcile: find executions whose stored status differs from the rollup of their tasks, and mark them."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from django.db import connection

from executions import signals
from executions.conf import refresh_settings
from executions.database import run
from executions.errors import QueueUnavailable
from executions.models import Execution, Watermark
from executions.queue import member
from executions.strategies import strategy
from executions.usecases.marking import mark
from executions.usecases.quarantining import parole

PAGE = 5_000
BUSY = 10 * PAGE
EXAMPLES = 20
LOCK = 0x48524653  # an advisory lock of our own: one reconcile at a time
BEGINNING = datetime(1, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Drift:
    execution_id: int
    vendor_type: str
    stored: str
    true: str
    changed_at: datetime


@dataclass
class Reconciled:
    """`drifted` differ from their tasks; `waiting` of them are on the queue or in flight, as they should
    be; the others were lost and are `marked`, unless it is a dry run."""

    looked_at: int = 0
    drifted: int = 0
    waiting: int = 0
    marked: int = 0
    paroled: int = 0
    already_running: bool = False
    postponed: bool = False
    examples: list[Drift] = field(default_factory=list)
    oldest: datetime | None = None


Progress = Callable[[int], None]


def reconcile(
    *,
    full: bool = False,
    dry_run: bool = False,
    yielding: bool = False,
    progress: Progress = lambda looked_at: None,
) -> Reconciled:
    """Compare what changed since the watermark (or everything, if `full`) and mark what differs.

    1. Ask which changes are ready to be looked at (they had time to be refreshed), and before which moment
       they are settled (no open transaction can bring an older one).
    2. Go through the changes since the watermark that are ready, in pages; mark what drifted and is neither
       on the queue nor in flight.
    3. Move the watermark to the settled moment, or only to the oldest drift. So a drift that was marked, and
       whose mark is lost again, is found by the next pass, and by each one until it is healed.

    `yielding` postpones the pass while the queue is long: it would take the database from those who drain
    it, to find little but what waits there.

    What if the process dies: the watermark has not moved, the next pass does it again. What if Redis is
    away: QueueUnavailable, and the watermark has not moved. What if two do it at once: the second says
    that one is running, and returns.
    """
    outcome = Reconciled()
    conf = refresh_settings()
    if yielding and not conf.in_process and strategy().backlog() > BUSY:
        outcome.postponed = True
        signals.reconciled.send(sender=reconcile, outcome=outcome)
        return outcome
    with _alone() as alone:
        if not alone:
            outcome.already_running = True
            signals.reconciled.send(sender=reconcile, outcome=outcome)
            return outcome
        if not dry_run:
            outcome.paroled = len(parole())
        begin = _watermark()
        grace = timedelta(seconds=conf.reconcile_grace)
        ready, settled = run("settled_moment", grace=grace)[0]
        pages = _all_executions() if full else _changed_between(begin, ready)
        for ids, looked_at in pages:
            outcome.looked_at += looked_at
            _treat([Drift(*row) for row in run("find_drift", ids=ids)], outcome, dry_run)
            progress(outcome.looked_at)
        if not dry_run:
            _move_watermark(begin, begin if full else settled or begin, outcome.oldest)
    signals.reconciled.send(sender=reconcile, outcome=outcome)
    return outcome


def _treat(drifts: Sequence[Drift], outcome: Reconciled, dry_run: bool) -> None:
    if not drifts:
        return
    names = [member(one.execution_id, one.vendor_type) for one in drifts]
    lost = _lost(drifts, names)
    if not dry_run and lost:
        if not mark(lost):
            raise QueueUnavailable("Redis is away: the drift that was found will be found again")
        outcome.marked += len(lost)
    outcome.drifted += len(drifts)
    outcome.waiting += len(drifts) - len(lost)
    outcome.examples += drifts[: EXAMPLES - len(outcome.examples)]
    outcome.oldest = min(filter(None, [outcome.oldest, *(one.changed_at for one in drifts)]))


def _lost(drifts: Sequence[Drift], names: Sequence[str]) -> list[str]:
    """Those that nobody has on a queue or in hand, looked at once more: a claim may have been completed
    between the look at the database and the look at the queue."""
    if refresh_settings().in_process:
        return list(names)
    missing = set(strategy().lost(names))
    ids = [one.execution_id for one, name in zip(drifts, names, strict=True) if name in missing]
    still = [Drift(*row) for row in run("find_drift", ids=ids)] if ids else []
    return [member(one.execution_id, one.vendor_type) for one in still]


def _watermark() -> datetime:
    row = Watermark.objects.filter(pk=1).first()
    return row.settled_before if row else BEGINNING


def _move_watermark(begin: datetime, settled: datetime, oldest: datetime | None) -> None:
    """To `settled`, or back to the oldest drift, which stays in sight until it is healed.

    Somebody who moved it back in the meantime (a release from quarantine) is right: then it stays there.
    """
    moment = min(settled, oldest or settled)
    Watermark.objects.get_or_create(pk=1, defaults={"settled_before": begin})
    Watermark.objects.filter(pk=1, settled_before=begin).update(settled_before=moment)


def _changed_between(begin: datetime, end: datetime) -> Iterator[tuple[list[int], int]]:
    """Pages of executions with a task that changed between the two."""
    time, last_id = begin, 0
    while True:
        ids, time_of_last, id_of_last, looked_at = run(
            "changed_since", after_time=time, after_id=last_id, before=end, page=PAGE
        )[0]
        if not looked_at:
            return
        yield ids, looked_at
        time, last_id = time_of_last, id_of_last


def _all_executions() -> Iterator[tuple[list[int], int]]:
    last_id = 0
    while True:
        page = Execution.objects.filter(pk__gt=last_id).order_by("pk")
        ids = list(page.values_list("pk", flat=True)[:PAGE])
        if not ids:
            return
        yield ids, len(ids)
        last_id = ids[-1]


@contextmanager
def _alone() -> Iterator[bool]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [LOCK])
        alone = bool(cursor.fetchone()[0])
    try:
        yield alone
    finally:
        if alone and connection.connection is not None:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [LOCK])
