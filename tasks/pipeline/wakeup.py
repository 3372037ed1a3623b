"""Whether a tick is sent before that of the schedule: one state machine, whose state is the key `wake` in Redis.

| state          | means                                                         |
| -------------- | ------------------------------------------------------------- |
| no key         | no tick is on its way: the next event that needs one sends it |
| `TICK_SENT`    | a tick was sent, or looked for work a moment ago              |
| `MARKED_SINCE` | the same, and a member was marked since                       |

| event     | comes from                                          | no key      | `TICK_SENT`    | `MARKED_SINCE` |
| --------- | --------------------------------------------------- | ----------- | -------------- | -------------- |
| marked    | `mark`: a new member; few wait, or none is claimed  | send        | `MARKED_SINCE` | stays          |
| completed | `complete`: members wait, and half the room is free | send        | stays          | stays          |
| checked   | `check`, a moment after a tick                      | send, if    | no key         | send, if       |
| lost      | `check`, where the tick that was sent may be lost   | send, if    | send, if       | send, if       |
| emptied   | `claim`: the tick has taken all of a short queue    | `TICK_SENT` | `TICK_SENT`    | `TICK_SENT`    |
| ended     | `claim`, `tick_has_ended`: the tick claims no more  | stays       | no key         | no key         |
| vetoed    | `Tick.apply_async`: enough ticks wait in the broker | stays       | stays          | stays          |

*send*: the state is `TICK_SENT`, and the process that caused the event sends a tick. *if*: members wait and the
database is not down; else the state stays. Each event but that of `tick_has_ended` is part of the script that
causes it (queue/lua/_ticks.lua), so no mark falls between two states. A tick that finds a pause causes none.

If the process dies between the event and the tick, or the tick cannot be sent, the key ends after WAKE_TTL_MS, and
the next event, recovery (5 s) or the schedule sends one. A tick that is vetoed is not sent: the ticks that wait do
its work. The older designs wait for their schedule.
"""

import logging
import threading
from typing import Any

from celery import current_app

from harbor_refresh.executions.errors import QueueUnavailable
from harbor_refresh.tasks.conf.pacing import GATHERING_SECONDS, SMALL
from harbor_refresh.tasks.queue import execution_queue
from harbor_refresh.tasks.queue.claim import Batch
from harbor_refresh.tasks.strategies import strategy

log = logging.getLogger("harbor_refresh")

#: Held while a check that ignores a pending wake is planned: many claims may meet the same locked row.
_planned = threading.Lock()


def send(name: str) -> None:
    """Send the tick of the Celery task of that name. The task is not imported, because it imports the modules
    that send ticks."""
    current_app.tasks[name].apply_async(retry=False)


def send_first(**_: Any) -> None:
    """When a worker starts, ask for a recovery and for a run of deliveries at once."""
    for name in ("tasks.recover_stale", "tasks.deliver"):
        send(name)


def send_tick() -> None:
    try:
        send("tasks.claim_batch")
    except Exception as exc:  # a tick is only a hint: no error of the broker's client may fail the caller
        log.warning("Could not wake a tick, the next one of the schedule will do: %s", exc)


def check(**ignored: bool) -> None:
    """Send a tick if members wait and no tick was sent yet. `ignored`: see ExecutionQueue.must_send_tick."""
    if not strategy().runs_cycles and execution_queue().must_send_tick(**ignored):
        send_tick()


def check_after(batch: Batch) -> None:
    """Check a short queue again: in a moment, for marks of that moment; and when the first member has rested."""
    if batch.backlog <= SMALL and (batch.claim.members or batch.wait):
        check_later(GATHERING_SECONDS)
    if batch.wait:
        check_later(batch.wait)


def check_later(seconds: float, *, ignore_pending_wake: bool = False) -> None:
    """Check after so many seconds. The process waits, because a countdown of a message compares the clocks of two
    machines. If it dies before, recovery checks within a few seconds. It plans at most one check that ignores a
    pending wake."""
    if ignore_pending_wake and not _planned.acquire(blocking=False):
        return
    timer = threading.Timer(seconds, _check_now, kwargs={"ignore_pending_wake": ignore_pending_wake})
    timer.daemon = True
    timer.start()


def _check_now(*, ignore_pending_wake: bool) -> None:
    if ignore_pending_wake:
        _planned.release()
    try:
        check(ignore_pending_wake=ignore_pending_wake)
    except QueueUnavailable as exc:
        log.warning("Could not look whether work waits, the next tick of the schedule will do: %s", exc)
