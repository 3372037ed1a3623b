"""`tasks.refresh_executions`, the subtask: refresh the executions of one claim and complete it.

The message is acknowledged late, and rejected when its worker is lost. The first delivery takes the tokens
over, so a second delivery finds them gone and does nothing. If the first fails, the claim is recovered from the
node that took it over.
"""

from typing import Any

from celery import shared_task

from harbor_refresh.tasks.actor import Actor
from harbor_refresh.tasks.pipeline.refresher import refresh_claim
from harbor_refresh.tasks.queue.claim import Claim


@shared_task(name="tasks.refresh_executions", base=Actor)
def refresh_executions(claim: dict[str, Any]) -> dict[str, int]:
    outcome = refresh_claim(Claim.from_message(claim))
    return {"succeeded": outcome.succeeded, "failed": len(outcome.failed)}
