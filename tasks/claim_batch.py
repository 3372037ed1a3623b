"""`tasks.claim_batch`, the tick: claim waiting executions and fan them out over the workers.

Beat sends it every EXECUTION_STATUS_REFRESH_INTERVAL_SECONDS. The first mark on an empty queue sends it, and so
does a worker that completes a claim while more wait. Any number of ticks may run at once, because claiming is
atomic and all of them together claim no more than the workers have room for.

With any strategy but `claim` it sends the tick to every live worker instead.
"""

from collections.abc import Sequence

from celery import shared_task

from harbor_refresh.tasks.broker.lengths import waiting
from harbor_refresh.tasks.broker.pooled import batch_producer
from harbor_refresh.tasks.celery_queues import WORK
from harbor_refresh.tasks.pauses.pauses import is_refreshing_paused
from harbor_refresh.tasks.pipeline.dispatcher import dispatch
from harbor_refresh.tasks.queue import execution_queue
from harbor_refresh.tasks.queue.claim import Claim
from harbor_refresh.tasks.refresh_executions import refresh_executions
from harbor_refresh.tasks.run_cycle import broadcast
from harbor_refresh.tasks.strategies import older_strategy
from harbor_refresh.tasks.tick import Tick


@shared_task(name="tasks.claim_batch", base=Tick)
def claim_batch() -> int:
    if older_strategy():
        execution_queue().tick_ran()
        if not is_refreshing_paused():
            broadcast()
        return 0
    return dispatch(publish, waiting(WORK))


def publish(claims: Sequence[Claim]) -> None:
    """Send all messages to the broker in one batch."""
    with batch_producer() as producer:
        for claim in claims:
            refresh_executions.apply_async(
                (claim.to_message(),),
                producer=producer,
                argsrepr=f"({claim})",  # type: ignore[call-arg]  # celery-types does not know it
                retry=False,
            )
