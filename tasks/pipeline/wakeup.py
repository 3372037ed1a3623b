"""The wake-up: send a tick for waiting work before the schedule does.

    a mark on an empty queue, a completion while more waits    send_tick
    little waits, a member rests, rows are locked              check_later
    recovery                                                   check

If a tick cannot be sent, the scheduled tick does its work.
"""

import logging
import threading
from time import monotonic

from harbor_refresh.executions.errors import QueueUnavailable
from harbor_refresh.tasks import tick
from harbor_refresh.tasks.pacing import MERGED_SECONDS
from harbor_refresh.tasks.strategies import strategy

log = logging.getLogger("harbor_refresh")

_lock = threading.Lock()
_due: set[tuple[float, bool]] = set()  # when this process will check, by its monotonic clock, and how


def send_tick() -> None:
    try:
        tick.send("tasks.claim_batch")
    except Exception as exc:  # a tick is only a hint: no error of the broker's client may fail the caller
        log.warning("Could not wake a tick, the next one of the schedule will do: %s", exc)


def check(*, ignore_pending_wake: bool = False, ignore_empty_queue: bool = False) -> bool:
    """Send a tick if members wait and no tick was sent yet. With `ignore_pending_wake`, send one although one was
    sent, because that one may have been lost. With `ignore_empty_queue`, send one although no member waits,
    because marks may wait that only a tick takes onto the queue. True if a tick was sent.

    The older designs wait for their schedule.
    """
    is_needed = strategy().wake(ignore_pending_wake=ignore_pending_wake, ignore_empty_queue=ignore_empty_queue)
    if is_needed:
        send_tick()
    return is_needed


def check_later(seconds: float, *, ignore_pending_wake: bool = False) -> None:
    """Check after so many seconds. Checks that are due close together are one.

    The process waits, and not the message, because a countdown compares the clocks of two machines. What if the
    process dies meanwhile: recovery checks every few seconds.
    """
    due = monotonic() + seconds
    with _lock:
        if any(abs(due - other) < MERGED_SECONDS and how == ignore_pending_wake for other, how in _due):
            return
        _due.add((due, ignore_pending_wake))
    timer = threading.Timer(seconds, _check_now, [due, ignore_pending_wake])
    timer.daemon = True
    timer.start()


def _check_now(due: float, ignore_pending_wake: bool) -> None:
    with _lock:
        _due.discard((due, ignore_pending_wake))
    try:
        check(ignore_pending_wake=ignore_pending_wake)
    except QueueUnavailable as exc:
        log.warning("Could not look whether work waits, the next tick of the schedule will do: %s", exc)
