"""Work a claim of the queue: take it over, refresh, complete."""

from executions import points
from executions.errors import DatabaseAway, QueueUnavailable
from executions.quarantines import quarantine
from executions.rollup import Refreshed, refresh
from tasks import signals
from tasks.conf import refresh_settings
from tasks.pipeline import wakeup
from tasks.pipeline.pacing import BUSY_SECONDS
from tasks.queue import execution_queue
from tasks.queue import members as names
from tasks.queue.claim import Claim
from tasks.queue.node import this_node
from tasks.queue.queue import SMALL


def work(claim: Claim) -> Refreshed:
    """Work a claim that came as a message.

    1. Take it over, as far as it is still live. What is not has been recovered: somebody else's now.
    2. Refresh.
    3. Complete what succeeded, give back what failed, and, uncounted, what somebody else has locked.

    What if the process dies on any line: its tokens stay in processing under its node's name, the node
    falls silent, recovery gives them back. What if the database goes away: everything goes back uncounted
    and nobody claims for a moment. What if Redis goes away: this node cannot know what it holds, so it
    starts a new life and the old one is recovered; refreshing again is harmless.
    """
    queue = execution_queue()
    try:
        mine = queue.take_over(claim, this_node.name)
        _tell_outlived(claim, len(claim) - len(mine))
        if not mine.members:
            return Refreshed()
        try:
            outcome = refresh(mine.ids, wait=False)
        except DatabaseAway as exc:
            queue.pause()
            queue.mark_failed(mine, counted=False)
            signals.database_away.send(sender=work, count=len(mine), error=str(exc))
            return Refreshed(failed=dict.fromkeys(mine.ids, str(exc)))
        points.reach("committed", mine)
        _settle(mine, outcome)
    except QueueUnavailable:
        this_node.renew()
        raise
    signals.refreshed.send(sender=work, outcome=outcome)
    return outcome


def _settle(mine: Claim, outcome: Refreshed) -> None:
    """What succeeded first: nothing that goes wrong with the others may keep it in flight.

    What is busy wakes nobody at once: a row that stays locked would be claimed again and again. A few of them
    are mostly in the hands of another refresh, which is over in a moment, so they are looked for a little later;
    many wait for the next tick, of recovery or of the schedule."""
    queue = execution_queue()
    undone = outcome.failed.keys() | outcome.busy
    done, failed, busy = mine, mine.only(()), mine.only(())
    if undone:
        done = mine.without(undone)
        failed, busy = mine.among(outcome.failed), mine.among(outcome.busy)
    if done.members:
        completed = queue.mark_complete(done)
        _tell_outlived(done, completed.outlived)
        if completed.wake:
            wakeup.send_tick()
    if busy.members:
        queue.mark_failed(busy, counted=False)
        if len(busy) <= SMALL:
            wakeup.check_later(BUSY_SECONDS, ignore_pending_wake=True)
    if failed.members:
        given_back = queue.mark_failed(failed)
        attempts = refresh_settings().max_attempts
        quarantine(names.ids(given_back.exhausted), attempts, reasons=outcome.failed)


def _tell_outlived(claim: Claim, count: int) -> None:
    if count:
        signals.outlived.send(sender=work, claim=claim, count=count)
