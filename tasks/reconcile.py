"""`tasks.reconcile`: find what Redis forgot, by what changed lately in the database.

Sent by beat every REFRESH_RECONCILE_INTERVAL_SECONDS. One runs at a time; another says so and returns.
"""

from celery import shared_task

from tasks.pipeline import reconciliation
from tasks.tick import Tick


@shared_task(name="tasks.reconcile", base=Tick)
def reconcile() -> dict[str, int]:
    outcome = reconciliation.reconcile(yielding=True)
    return {"looked_at": outcome.looked_at, "marked": outcome.marked}
