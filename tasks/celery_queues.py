"""The three queues in the broker, and how much waits in them; and the channel that reaches every worker."""

from celery import current_app
from kombu import Exchange, Queue

#: Refresh subtasks. Its length is bounded by the claim: a backlog waits in the set, not here.
WORK = "harbor_refresh"
#: Tracked jobs, and whatever else is sent to no queue in particular. Apart from the refreshes, which would wait
#: behind thousands of them: a worker takes from its queues in turns.
JOBS = "harbor_refresh.jobs"
#: Ticks, apart from the work, so that a full house of work never hides that nobody takes ticks.
TICKS = "harbor_refresh.ticks"
#: Not a queue at all but a channel of Redis's PUBLISH: every worker that listens gets what is sent. Three
#: things keep anything from being left of it. All workers call it by one name, for each name stays in
#: `_kombu.binding.*` for ever if its worker is killed. It is not acknowledged, for an unacknowledged message of
#: a dead worker would be put into a list that nobody reads. And it is no kombu `Broadcast`, which the sender
#: would not declare: in a process that knows nothing of its kind it would be sent to that list, too.
CYCLES = Queue(
    "harbor_refresh.cycles",
    Exchange("harbor_refresh.cycles", type="fanout"),
    routing_key="harbor_refresh.cycles",
    no_ack=True,
)


#: What goes where, of what this package does. The first that fits is taken.
ROUTES = {
    "tasks.claim_batch": {"queue": TICKS},
    "tasks.recover_stale": {"queue": TICKS},
    "tasks.reconcile": {"queue": TICKS},
    "tasks.reap": {"queue": TICKS},
    "tasks.*": {"queue": WORK},
}


def waiting(queue: str) -> int:
    """How many messages wait in a queue of the broker, of those without a priority.

    One LLEN: to declare the queue passively, which is how kombu answers this, is seven commands.
    """
    with current_app.pool.acquire(block=True) as connection:
        return int(connection.default_channel.client.llen(queue))  # type: ignore[attr-defined]


def waiting_in_all(queue: str) -> int:
    """How many messages wait in a queue of the broker, with any priority: each has a list of its own."""
    with current_app.pool.acquire(block=True) as connection:
        return int(connection.default_channel._size(queue))  # type: ignore[attr-defined]
