"""The deliverer: one run of `tasks.deliver`, which tells webhooks and handlers of status changes."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from django.db import transaction

from harbor_refresh.executions import crash_points
from harbor_refresh.executions.database import absence_translated, run
from harbor_refresh.executions.deliveries import answers
from harbor_refresh.executions.deliveries.handler_runs import RUN_SECONDS

if TYPE_CHECKING:
    from harbor_refresh.executions.deliveries.sender import Sender

#: Changes in one transaction. It is short, and 200 subscriptions write 200 rows for each.
BATCH = 1_000
#: How often the outbox is looked at while there is work.
LOOK_SECONDS = 0.1


def deliver(
    ask_handlers: Callable[[], object] = lambda: None,
    go_on: Callable[[], object] = lambda: None,
    until: float | None = None,
) -> bool:
    """Deliver what is due, until nothing is left to do or the time is over, after RUN_SECONDS if `until` does not
    say: then `go_on` is called, and the result is false. Two runs at once have different deliveries.

    1. Write the deliveries of new changes, and `ask_handlers` to run.
    2. Claim as many as there is room for of each webhook, and send them. If the process dies, they are due again
       when the lease ends, under the same id. If it cannot send (answers.py), they wait for one that can.
    3. Record the results as they come, and look again.
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
    if not answers.can_send():
        return nullcontext()
    from harbor_refresh.executions.deliveries.sender import Sender

    return Sender()


def write_deliveries() -> int:
    """Write the deliveries of all untold changes; return how many changes were told.

    Two processes at once: the second waits for the rows that the first has locked, and leaves them out. So the
    changes of an execution are written in order.
    """
    count = 0
    while True:
        with absence_translated(), transaction.atomic():
            told: int = run("write_deliveries", most=BATCH)[0][0]
            if told:
                crash_points.reach("listed", ())
        count += told
        if told < BATCH:
            return count
