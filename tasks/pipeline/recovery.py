"""Recover: release the claims of dead nodes."""

from collections.abc import Callable

from harbor_refresh.executions.attached.attachment import is_attached
from harbor_refresh.executions.lifecycle.quarantines import quarantine
from harbor_refresh.tasks import pacing
from harbor_refresh.tasks.conf import refresh_settings
from harbor_refresh.tasks.news import signals
from harbor_refresh.tasks.pipeline import wakeup
from harbor_refresh.tasks.queue import execution_queue
from harbor_refresh.tasks.queue import members as names
from harbor_refresh.tasks.queue.stale_claims import release_stale


def recover(*, idle: bool = False, lost_before: Callable[[], int] = lambda: 0) -> int:
    """Release the claims of dead nodes and claims that are too old; wake a tick if members wait, or if keys of a
    running Harbor may. Returns how many were recovered, with those that were quarantined.

    `idle`: nothing waits with the broker, so a claim that still waits for a worker has lost its message, and is
    released as soon as the claim of a dead node would be. `lost_before` is asked when our keys are sound: the
    broker may have lost messages from before the moment (us) that it returns, so claims that wait since then are
    released at once. Any number of processes may do it at once, because a token is released once.
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
    # no report comes here from a running Harbor, and its keys are not on the queue, so only a tick can find them
    wakeup.check(ignore_pending_wake=True, ignore_empty_queue=is_attached() and pacing.LEGACY_KEYS_PER_SECOND > 0)
    return count
