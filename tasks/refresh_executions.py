"""`tasks.refresh_executions`, the subtask: refresh the executions of one claim and complete it.

Acknowledged late and rejected when its worker is lost. A message that comes a second time finds that its
tokens were taken over the first time, and does nothing; the claim itself is recovered from the node that
took it over.
"""

from typing import Any

from celery import shared_task

from tasks.pipeline.refresher import refresh_claim
from tasks.queue.claim import Claim


@shared_task(name="tasks.refresh_executions")
def refresh_executions(claim: dict[str, Any]) -> dict[str, int]:
    outcome = refresh_claim(Claim.from_message(claim))
    return {"succeeded": outcome.succeeded, "failed": len(outcome.failed)}
