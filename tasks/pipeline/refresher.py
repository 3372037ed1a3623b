"""Refresh the executions of a claim: take it over, refresh, complete."""

from harbor_refresh.executions.errors import DatabaseDown
from harbor_refresh.executions.lifecycle import crash_points
from harbor_refresh.executions.lifecycle.quarantines import quarantine
from harbor_refresh.executions.lifecycle.rollup import Refreshed, refresh
from harbor_refresh.tasks.conf import refresh_settings
from harbor_refresh.tasks.conf.pacing import LOCKED_SECONDS, SMALL
from harbor_refresh.tasks.news import signals
from harbor_refresh.tasks.pipeline import wakeup
from harbor_refresh.tasks.queue import execution_queue
from harbor_refresh.tasks.queue import members as names
from harbor_refresh.tasks.queue.claim import Claim
from harbor_refresh.tasks.queue.node import this_node


@this_node.renewed_without_redis()
def refresh_claim(claim: Claim) -> Refreshed:
    """Refresh the executions of a claim that came as a message.

    1. Take over the part of it that is still live. The rest was recovered and belongs to another process.
    2. Refresh.
    3. Complete what succeeded; release what failed; release, uncounted, what another process has locked.

    If the process dies on any line, its heartbeats stop, and recovery releases its tokens. If the database goes
    down, all members are released uncounted, and no process claims for a moment. If Redis goes down, this node
    takes a new name.
    """
    queue = execution_queue()
    mine = queue.take_over(claim, this_node.name)
    _tell_claim_expired(claim, len(claim) - len(mine))
    if not mine.members:
        return Refreshed()
    try:
        outcome = refresh(mine.ids, wait=False)
    except DatabaseDown as exc:
        queue.pause()
        queue.release(mine)
        signals.database_down.send(sender=refresh_claim, count=len(mine), error=str(exc))
        return Refreshed(failed=dict.fromkeys(mine.ids, str(exc)))
    crash_points.reach("committed", mine)
    _end(mine, outcome)
    signals.refreshed.send(sender=refresh_claim, outcome=outcome)
    return outcome


def _end(mine: Claim, outcome: Refreshed) -> None:
    """Complete the successes first, so that no trouble with the rest keeps them in flight.

    Members with locked rows wake no tick at once: a row that stays locked would be claimed again and again. A few
    are usually locked by another refresh that ends soon, so a check follows; many wait for the next tick."""
    queue = execution_queue()
    undone = outcome.failed.keys() | outcome.locked
    done, failed, locked = mine.without(undone), mine.among(outcome.failed), mine.among(outcome.locked)
    if done.members:
        completed = queue.complete(done)
        _tell_claim_expired(done, completed.claim_expired)
        if completed.wake:
            wakeup.send_tick()
    if locked.members:
        queue.release(locked)
        if len(locked) <= SMALL:
            wakeup.check_later(LOCKED_SECONDS, ignore_pending_wake=True)
    if failed.members:
        exhausted = queue.fail(failed).exhausted
        attempts = refresh_settings().max_attempts
        quarantine(names.ids(exhausted), attempts, reasons=outcome.failed)


def _tell_claim_expired(claim: Claim, count: int) -> None:
    if count:
        signals.claim_expired.send(sender=refresh_claim, claim=claim, count=count)
