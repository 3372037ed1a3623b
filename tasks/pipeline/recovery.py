"""Recover: release the claims of dead nodes."""

from executions.quarantines import quarantine
from tasks import signals
from tasks.conf import refresh_settings
from tasks.pipeline import wakeup
from tasks.queue import execution_queue
from tasks.queue import members as names
from tasks.queue.stale_claims import release_stale


def recover(*, idle: bool = False) -> int:
    """Release the claims of dead nodes and claims that are too old; wake a tick if members wait.

    `idle`: nothing waits with the broker. Then a claim that still waits for a worker has lost its message, and is
    released as soon as the claim of a dead node would be.

    Any number of processes may do it at once, because a token is released once. Returns how many were recovered,
    including those that have now failed too often and were quarantined.
    """
    released, unreadable = release_stale(execution_queue(), idle=idle)
    if unreadable:
        signals.discarded.send(sender=recover, members=unreadable)
    quarantine(names.ids(released.exhausted), refresh_settings().max_attempts)
    count = released.returned + len(released.exhausted)
    if count:
        signals.recovered.send(sender=recover, count=count)
    wakeup.check(ignore_pending_wake=True)
    return count
