"""Recover: release the claims of dead nodes."""

from collections.abc import Callable

from harbor_refresh.executions.lifecycle.quarantines import quarantine
from harbor_refresh.tasks.conf import refresh_settings
from harbor_refresh.tasks.news import signals
from harbor_refresh.tasks.pipeline import legacy_marks, wakeup
from harbor_refresh.tasks.queue import execution_queue
from harbor_refresh.tasks.queue import members as names
from harbor_refresh.tasks.queue.stale_claims import release_stale


def recover(*, idle: bool = False, lost_before: Callable[[], int] = lambda: 0) -> int:
    """Release the claims of dead nodes and claims that are too old; wake a tick if members wait, or if keys of a
    running Harbor may.

    `idle`: nothing waits with the broker. Then a claim that still waits for a worker has lost its message, and
    is released as soon as the claim of a dead node would be. `lost_before` is asked when our keys are sound:
    the broker may have lost messages from before the moment (us) that it returns, so claims that wait since
    then are released at once.

    Any number of processes may do it at once, because a token is released once. Returns how many were
    recovered, including those that have now failed too often and were quarantined.
    """
    queue = execution_queue()
    if foreign := queue.drop_foreign_keys():
        signals.keys_dropped.send(sender=recover, keys=foreign)
    released, unreadable = release_stale(queue, idle=idle, lost_before=lost_before())
    if unreadable:
        signals.discarded.send(sender=recover, members=unreadable)
    quarantine(names.ids(released.exhausted), refresh_settings().max_attempts)
    count = released.returned + len(released.exhausted)
    if count:
        signals.recovered.send(sender=recover, count=count)
    wakeup.check(ignore_pending_wake=True, ignore_empty_queue=legacy_marks.are_looked_for_by_recovery())
    return count
