"""`tasks.sweep`: delete old executions and other old rows, and refresh executions that dangle.

Beat sends it every REFRESH_SWEEP_INTERVAL_SECONDS. Only one runs at a time; a second logs that and returns. It
works for SWEEP_SECONDS, so that no worker is held for long and a warm shutdown waits no longer; then it sends
itself again, with the place where it stopped. If its worker was killed, the message comes again while the lease of
the killed one is in force; so a message with a place waits for the end of that lease. If a message is lost, the
next one of the schedule begins at the first step.
"""

from typing import Any

from celery import shared_task

from harbor_refresh.executions.lease import LEASE
from harbor_refresh.executions.sweep import Place
from harbor_refresh.executions.sweep import sweep as sweep_executions
from harbor_refresh.tasks.pacing import SWEEP_SECONDS
from harbor_refresh.tasks.tick import Tick


@shared_task(name="tasks.sweep", base=Tick, bind=True)
def sweep(self: Tick, step: str = "", position: Any = ()) -> dict[str, int]:
    begin = Place(step, tuple(position)) if step else None
    outcome = sweep_executions(begin=begin, seconds=SWEEP_SECONDS)
    if outcome.stopped_at:
        self.go_on(outcome.stopped_at.step, outcome.stopped_at.position)
    elif begin and (outcome.held or outcome.overtaken):
        self.go_on(step, position, after=LEASE.total_seconds())
    return {"executions": outcome.executions, "refreshed": outcome.refreshed}
