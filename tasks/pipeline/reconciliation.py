"""Reconcile: find executions whose stored status differs from the rollup of their tasks, and mark them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from math import inf
from time import monotonic

from harbor_refresh.executions.attached.attachment import is_attached
from harbor_refresh.executions.errors import LeaseLost, QueueUnavailable
from harbor_refresh.executions.lifecycle.lease import Held, Lease
from harbor_refresh.executions.lifecycle.quarantines import release_expired
from harbor_refresh.executions.models import Execution
from harbor_refresh.tasks.conf import pacing, refresh_settings
from harbor_refresh.tasks.models.state import Watermark
from harbor_refresh.tasks.news import signals
from harbor_refresh.tasks.pipeline.marks import mark
from harbor_refresh.tasks.queue.members import member
from harbor_refresh.tasks.queue.sets import pages
from harbor_refresh.tasks.sql import run
from harbor_refresh.tasks.strategies import strategy

#: The ids of executions, and how many rows were looked at for them. A change between two pages is later than the
#: end of the pass, and belongs to the next one.
Pages = Iterator[tuple[list[int], int]]

PAGE = 5_000
BEGINNING = datetime(1, 1, 1, tzinfo=UTC)

#: Harbor's cores write the time of a change by their own clocks, in whole seconds, and commit it later, if they
#: stood still or waited for a lock. So what changed so long before the watermark is compared again.
MARGIN = timedelta(minutes=5)
#: The ids that one reading of Harbor's table returns.
MOST = 10 * PAGE
LONG_QUEUE = 10 * PAGE
EXAMPLES = 20


@dataclass(frozen=True)
class Drift:
    execution_id: int
    vendor: str
    stored: str
    true: str
    changed_at: datetime | None


@dataclass
class Reconciled:
    """`looked_at` counts changed tasks; executions, if all were compared or they are those of a running Harbor.
    `waiting` of the `drifted` are on the queue or in flight; the rest were lost and are `marked`, unless it is a
    dry run. `held`: another pass has the lease, so this one did nothing. `lease_lost`: it ended early.
    `rescan_reason`: why the watermark could not be trusted, so that all executions were compared."""

    looked_at: int = 0
    drifted: int = 0
    waiting: int = 0
    marked: int = 0
    released_from_quarantine: int = 0
    held: Held | None = None
    lease_lost: bool = False
    postponed: bool = False
    rescan_reason: str | None = None
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

    1. Take the lease. Release from quarantine the executions whose time is up. Move the watermark back to the
       changes of all released executions.
    2. Read up to which moment changes are ready (they had time to be refreshed), and before which moment they are
       settled (no open transaction can commit an older one).
    3. Read the changes between the watermark and the ready moment in pages; mark what drifted and is neither on
       the queue nor in flight. If the times of the watermark cannot be trusted, read all executions.
    4. Move the watermark to the settled moment, or only to the oldest drift. So a drift whose mark is lost again
       is found by the next pass, and by every pass until it is healed.

    `yielding` postpones the pass while the queue is long: it would take the database from the workers that drain
    the queue, and find little else than what waits there. A dry run writes nothing and takes no lease.

    If the process dies, the lease expires, the watermark has not moved, and the next pass does the same work. The
    same if Redis is down: it raises QueueUnavailable. If two processes do it at once, the second returns. If the
    process stands still until another pass has taken over its lease, it ends without a further write. If a release
    commits during the pass, the pass may have read past its changes, so the row of the release stays for the next.
    """
    outcome = Reconciled()
    if yielding and not refresh_settings().in_process and strategy().backlog() > LONG_QUEUE:
        outcome.postponed = True
    elif dry_run:
        _look(outcome, full=full, progress=progress)
    else:
        lease = Lease("reconcile")
        try:
            with lease.taken() as outcome.held:
                if not outcome.held:
                    _look(outcome, full=full, progress=progress, lease=lease)
        except LeaseLost:
            outcome.lease_lost = True
    signals.reconciled.send(sender=reconcile, outcome=outcome)
    return outcome


def look_for_drift(seconds: float) -> Reconciled:
    """Compare what changed since the watermark, for about `seconds`, because a person waits for the answer; write
    nothing, and send no signal of a pass."""
    outcome = Reconciled()
    _look(outcome, deadline=monotonic() + seconds)
    return outcome


def _look(
    outcome: Reconciled,
    *,
    full: bool = False,
    progress: Progress = lambda looked_at: None,
    lease: Lease | None = None,
    deadline: float = inf,
) -> None:
    """Do a pass, until the deadline. Without a lease it is a dry run."""
    if lease:
        after = timedelta(seconds=pacing.QUARANTINE_SECONDS)
        with lease.fenced():
            outcome.released_from_quarantine = len(release_expired(after))
        with lease.fenced():
            run("notice_releases")
    grace = timedelta(seconds=pacing.RECONCILE_GRACE_SECONDS)
    since, outcome.rescan_reason, last_pass_at, timeline, ready, settled = run("read_watermark", grace=grace)[0]
    if outcome.rescan_reason:
        since = BEGINNING
        if lease:
            signals.watermark_untrusted.send(sender=reconcile, rescan_reason=outcome.rescan_reason)
    changed = all_executions() if full or outcome.rescan_reason else changed_between(since, ready)
    for ids, looked_at in changed:
        if lease:
            lease.extend()
        outcome.looked_at += looked_at
        _treat(_find_drift(ids), outcome, lease)
        progress(outcome.looked_at)
        if monotonic() > deadline:
            return
    if lease:
        settled = settled or since
        with lease.fenced():
            # the clock and the server that the pass began with: if the server changed, the next pass must see it
            Watermark.objects.filter(pk=1).update(
                settled_before=min(settled, outcome.oldest or settled),
                last_pass_at=last_pass_at,
                timeline=timeline,
                last_drifted=outcome.marked,
            )


def _treat(drifts: Sequence[Drift], outcome: Reconciled, lease: Lease | None) -> None:
    if not drifts:
        return
    lost = _lost(drifts)
    if lease and lost:
        lease.extend()
        if not mark(lost):
            raise QueueUnavailable("Redis is down: the drift that was found will be found again")
        outcome.marked += len(lost)
    outcome.drifted += len(drifts)
    outcome.waiting += len(drifts) - len(lost)
    outcome.examples += drifts[: EXAMPLES - len(outcome.examples)]
    outcome.oldest = min(filter(None, [outcome.oldest, *(one.changed_at for one in drifts)]), default=None)


def _find_drift(ids: Sequence[int]) -> list[Drift]:
    dangling = timedelta(hours=pacing.DANGLING_HOURS)
    return [Drift(*row) for row in run("find_drift", ids=ids, dangling=dangling)]


def _lost(drifts: Sequence[Drift]) -> list[str]:
    """Return the drifted members that are neither on the queue nor in flight, after reading the database once
    more: a claim may have been completed between the first read of the database and the read of the queue."""
    ids = {member(one.execution_id, one.vendor): one.execution_id for one in drifts}
    if refresh_settings().in_process:
        return list(ids)
    missing = [ids[name] for name in strategy().lost(list(ids))]
    still = _find_drift(missing) if missing else []
    return [member(one.execution_id, one.vendor) for one in still]


def changed_between(begin: datetime, end: datetime) -> Pages:
    """Yield the executions with a task that changed between the two moments."""
    if not is_attached():
        return _by_the_index(begin, end)
    # at the first pass all have changed, and their order is cheaper than their times
    return all_executions() if begin <= BEGINNING else _by_the_table(begin, end)


def all_executions() -> Pages:
    last_id, of_all = 0, Execution.objects.order_by("pk").values_list("pk", flat=True)
    while ids := list(of_all.filter(pk__gt=last_id)[:PAGE]):
        yield ids, len(ids)
        last_id = ids[-1]


def _by_the_index(begin: datetime, end: datetime) -> Pages:
    """Read the tasks in the order of their changes."""
    time, last_id = begin, 0
    while True:
        ids, time_of_last, id_of_last, looked_at = run(
            "changed_since", after_time=time, after_id=last_id, before=end, page=PAGE
        )[0]
        if not looked_at:
            return
        yield ids, looked_at
        time, last_id = time_of_last, id_of_last


def _by_the_table(begin: datetime, end: datetime) -> Pages:
    """Read Harbor's table from one end to the other, because it has no index on the time of a change."""
    last_id = 0
    while True:
        rows = run("changed_executions", after_id=last_id, since=begin, margin=MARGIN, before=end, most=MOST)
        for page in pages((pk for (pk,) in rows), PAGE):
            yield page, len(page)
        if len(rows) < MOST:
            return
        (last_id,) = rows[-1]
