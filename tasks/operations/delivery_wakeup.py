"""The wake-up of the deliverer: one message after the first of many commits that have something to tell, and one
when the next retry is due.

What if it is lost: the schedule sends one.
"""

import logging
import threading
from time import monotonic
from typing import Any

from harbor_refresh.executions.errors import QueueUnavailable
from harbor_refresh.executions.text import said_by
from harbor_refresh.tasks.pacing import DELIVERER_LATE_SECONDS, DELIVERER_WAIT_SECONDS, DELIVERER_WAKE_MS
from harbor_refresh.tasks.pipeline import tick
from harbor_refresh.tasks.queue import execution_queue
from harbor_refresh.tasks.without_redis import agenda, mode

log = logging.getLogger("harbor_refresh")


def on_changes_written(**_: Any) -> None:
    """Send `tasks.deliver`, unless it was sent within the last second. A deliverer looks on for longer than that
    after its last work, so it finds the changes whose wake-up was left out. Without Redis this process calls the
    handlers."""
    if mode.is_on():
        agenda.add_written()
        return
    try:
        _send_unless_sent()
    except Exception as exc:  # ours, or any of the broker's client: the caller's work is committed
        _warn(exc)


def on_worker_ready(**_: Any) -> None:
    tick.send("tasks.deliver")


class NextLook:
    """The next moment at which this process wakes a deliverer, because a delivery is due then.

    The process waits, and not the message, because a countdown compares the clocks of two machines, and its
    message would be unacknowledged all the while. One moment is enough: the deliverer that is woken asks for the
    next one.

    What if the process dies meanwhile: the schedule wakes a deliverer. What if many processes wait for one moment:
    each has asked the database at the end of a pass of its own. The first one sends a message; the others see that
    it was sent after the moment, and send none. So N retries send at most one message a second.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._due = float("inf")  # by the monotonic clock
        self._timer: threading.Timer | None = None

    def plan(self, seconds: float) -> None:
        """Wake a deliverer after so many seconds. An earlier moment replaces a later one, which the deliverer will
        ask for again."""
        now = monotonic()
        due = now + min(seconds, DELIVERER_WAIT_SECONDS)
        with self._lock:
            if now < self._due <= due:
                return
            if self._timer is not None:
                self._timer.cancel()
            self._due = due
            self._timer = threading.Timer(due - now + DELIVERER_LATE_SECONDS, self._wake, [due])
            self._timer.daemon = True
            self._timer.start()

    def stop(self) -> None:
        """Wait no more: this process ends."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            self._due, self._timer = float("inf"), None

    def _wake(self, due: float) -> None:
        with self._lock:
            if self._due != due:
                return  # an earlier moment has replaced it
            self._due, self._timer = float("inf"), None
        try:
            if not _send_unless_sent():
                asked = monotonic()  # before the answer, so that in doubt there is one message too many
                lasts = execution_queue().deliverer_wake_lasts()
                sent_ago = DELIVERER_WAKE_MS / 1_000 - lasts
                # sent before the moment, so that deliverer may have looked too soon; or long ago, and it is over
                if not lasts or sent_ago > asked - due:
                    self.plan(lasts)
        except Exception as exc:  # ours, or any of the broker's client: the schedule comes
            _warn(exc)


def _send_unless_sent() -> bool:
    must_send = execution_queue().wake_deliverer()
    if must_send:
        tick.send("tasks.deliver")
    return must_send


def _warn(exc: Exception) -> None:
    error = str(exc) if isinstance(exc, QueueUnavailable) else said_by(exc)
    log.warning("Could not wake a deliverer, the schedule will: %s", error)
