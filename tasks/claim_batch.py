"""`tasks.claim_batch`, the tick: claim what waits and fan it out over the workers.

Sent by beat every EXECUTION_STATUS_REFRESH_INTERVAL_SECONDS, by the first mark on an empty queue, and by
whoever completes a claim while more waits. Any number at once is harmless: claiming is atomic, and all of
them together claim no more than the workers have room for.

With another strategy than `claim` it passes the tick on to every live worker instead.
"""

from collections.abc import Sequence

from celery import current_app, shared_task

from tasks.celery_queues import WORK, waiting
from tasks.pipeline.dispatcher import dispatch
from tasks.queue.claim import Claim
from tasks.refresh_executions import refresh_executions
from tasks.run_cycle import broadcast
from tasks.strategies import older_strategy
from tasks.tick import Tick


@shared_task(name="tasks.claim_batch", base=Tick)
def claim_batch() -> int:
    if older_strategy():
        broadcast()
        return 0
    return dispatch(publish, waiting(WORK))


def publish(claims: Sequence[Claim]) -> None:
    """All messages in one go to the broker."""
    with current_app.producer_or_acquire() as producer, producer.batch():
        for claim in claims:
            refresh_executions.apply_async(
                (claim.to_message(),),
                producer=producer,
                argsrepr=f"({claim})",  # type: ignore[call-arg]  # celery-types does not know it
                retry=False,
            )
