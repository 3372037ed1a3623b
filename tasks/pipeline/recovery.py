"""Recover: give back what dead nodes had claimed."""

from executions.quarantines import quarantine
from tasks import signals
from tasks.conf import refresh_settings
from tasks.pipeline import wakeup
from tasks.queue import execution_queue
from tasks.queue import members as names


def recover(*, idle: bool = False) -> int:
    """Give back the claims of dead nodes and of a time long past; wake a tick if anything waits.

    `idle`: nothing waits with the broker; then a claim that waits for a worker all the same has lost its
    message, and goes back as soon as one of a dead node would.

    Any number may do it at once: a token goes back once. Returns how many were recovered, those included
    that have now failed too often and were quarantined.
    """
    queue = execution_queue()
    given_back, unreadable = queue.recover_stale(idle=idle)
    if unreadable:
        signals.discarded.send(sender=recover, members=unreadable)
    quarantine(names.ids(given_back.exhausted), refresh_settings().max_attempts)
    count = given_back.returned + len(given_back.exhausted)
    if count:
        signals.recovered.send(sender=recover, count=count)
    wakeup.check(ignore_pending_wake=True)
    return count
