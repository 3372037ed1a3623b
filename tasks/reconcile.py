"""`tasks.reconcile`: find the executions that Redis forgot among those that changed lately in the database.

Beat sends it every REFRESH_RECONCILE_INTERVAL_SECONDS. Only one runs at a time; a second logs that and returns.
"""

from celery import shared_task

from harbor_refresh.tasks.pipeline import reconciliation
from harbor_refresh.tasks.tick import Tick


@shared_task(name="tasks.reconcile", base=Tick)
def reconcile() -> dict[str, int]:
    outcome = reconciliation.reconcile(yielding=True)
    return {"looked_at": outcome.looked_at, "marked": outcome.marked}
