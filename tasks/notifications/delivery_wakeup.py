"""The wake-up of the deliverer: one message after the first of many commits that have something to tell.

What if it is lost: the schedule sends one.
"""

import logging
from typing import Any

from executions.errors import QueueUnavailable
from executions.text import said_by
from tasks import tick
from tasks.queue import execution_queue

log = logging.getLogger("harbor_refresh")


def on_changes_written(**_: Any) -> None:
    """Send `tasks.deliver`, unless it was sent within the last second. A deliverer looks on for longer than that
    after its last work, so it finds the changes whose wake-up was left out."""
    try:
        if execution_queue().wake_deliverer():
            tick.send("tasks.deliver")
    except Exception as exc:  # ours, or any of the broker's client: the caller's work is committed
        error = str(exc) if isinstance(exc, QueueUnavailable) else said_by(exc)
        log.warning("Could not wake a deliverer, the schedule will: %s", error)


def on_worker_ready(**_: Any) -> None:
    tick.send("tasks.deliver")
