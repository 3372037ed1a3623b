"""The deliverer: one run of `tasks.deliver`, which tells webhooks and handlers of status changes."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from harbor_refresh.executions.deliveries import http
from harbor_refresh.executions.deliveries.handler_runs import RUN_SECONDS
from harbor_refresh.executions.deliveries.outbox import write_deliveries

if TYPE_CHECKING:
    from harbor_refresh.executions.deliveries.sender import Sender

#: How often the outbox is looked at while there is work.
LOOK_SECONDS = 0.1


def deliver(
    ask_handlers: Callable[[], object] = lambda: None,
    go_on: Callable[[], object] = lambda: None,
    until: float | None = None,
) -> bool:
    """Deliver what is due, until nothing is left to do or the time is over, after RUN_SECONDS if `until` does not
    say: then `go_on` is called, and the result is false.

    1. Write the deliveries of new changes, and `ask_handlers` to run.
    2. Claim as many as there is room for of each webhook, and send them.
    3. Record the results as they come, and look again.

    What if the process dies: what was claimed is due again when its lease ends, and is sent under the same id.
    What if two runs deliver at once: they have different deliveries. What if this process cannot send (http.py):
    it does 1, and what is due waits for a process that can.
    """
    next_look = time.monotonic()
    until = next_look + RUN_SECONDS if until is None else until
    with _sender() as sender:
        while (now := time.monotonic()) < until:
            told = 0
            if now >= next_look:
                next_look = now + LOOK_SECONDS
                told = write_deliveries()
                ask_handlers()
            if sender and (sender.claim() or sender.is_sending):
                sender.record()
            elif not told:
                return True
        go_on()
    return False


def _sender() -> "AbstractContextManager[Sender | None]":
    if not http.can_send():
        return nullcontext()
    from harbor_refresh.executions.deliveries.sender import Sender

    return Sender()
