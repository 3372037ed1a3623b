"""The two queues in the broker, and how much waits in them."""

from celery import current_app
from kombu.exceptions import ChannelError

#: Refresh subtasks. Its length is bounded by the claim: a backlog waits in the set, not here.
WORK = "harbor_refresh"
#: Ticks, apart from the work, so that a full house of work never hides that nobody takes ticks.
TICKS = "harbor_refresh.ticks"


#: What goes where. Whatever is no tick is work, which is the default queue.
ROUTES = {name: {"queue": TICKS} for name in ("tasks.claim_batch", "tasks.recover_stale", "tasks.reconcile")}


def waiting(queue: str) -> int:
    """How many messages wait in a queue of the broker."""
    with current_app.pool.acquire(block=True) as connection:
        try:
            declared = connection.default_channel.queue_declare(queue, passive=True)  # type: ignore[attr-defined]
        except ChannelError:  # Redis has no key for an empty list
            return 0
        return int(declared.message_count)
