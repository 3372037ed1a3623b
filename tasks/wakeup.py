"""Sends a tick when the domain says that work waits. A tick that cannot be sent is made up for by beat."""

import logging
import threading
from time import monotonic
from typing import Any

from executions.errors import QueueUnavailable
from executions.usecases import rouse

log = logging.getLogger("harbor_refresh")

#: Two looks that are due so close together are one.
CLOSE_SECONDS = 0.02

_lock = threading.Lock()
_due: set[tuple[float, bool]] = set()  # when this process will look, by its monotonic clock, and how


def send_tick(delay: float = 0.0, *, anyway: bool = False, **_: Any) -> None:
    """Now; or look in `delay` seconds whether a tick is needed by then: if anything was marked since the last
    one, or, `anyway`, if anything waits.

    The wait is spent here and not in the message: a countdown compares the clocks of two machines. What if
    the process dies meanwhile: recovery looks every few seconds whether anything waits.
    """
    if delay:
        _look_in(delay, anyway)
    else:
        _send()


def _look_in(delay: float, anyway: bool) -> None:
    due = monotonic() + delay
    with _lock:
        if any(abs(due - other) < CLOSE_SECONDS and how == anyway for other, how in _due):
            return
        _due.add((due, anyway))
    timer = threading.Timer(delay, _look, [due, anyway])
    timer.daemon = True
    timer.start()


def _look(due: float, anyway: bool) -> None:
    with _lock:
        _due.discard((due, anyway))
    try:
        rouse(anyway=anyway)
    except QueueUnavailable as exc:
        log.warning("Could not look whether work waits, the next tick of the schedule will do: %s", exc)


def _send() -> None:
    from tasks.claim_batch import claim_batch

    try:
        claim_batch.apply_async(retry=False)
    except Exception as exc:  # a hint never fails the one who gives it, whatever the broker's client raises
        log.warning("Could not wake a tick, the next one of the schedule will do: %s", exc)
