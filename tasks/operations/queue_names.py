"""The queues of the broker that there are: those of the Celery app, and those that workers take from."""

from celery import current_app

from harbor_refresh.tasks.broker.celery_queues import DELIVERIES, JOBS, TICKS, WORK
from harbor_refresh.tasks.queue import execution_queue


def declared() -> list[str]:
    """Return the queues that the settings of the Celery app declare. The default one is among them."""
    conf = current_app.conf
    return list(dict.fromkeys([*(queue.name for queue in conf.task_queues or ()), conf.task_default_queue]))


def known() -> list[str]:
    """Return the declared queues, and then the other ones that a worker has taken from within a week.

    Raises QueueUnavailable if Redis is away."""
    taken = execution_queue().taken_queues()
    return list(dict.fromkeys([*declared(), *sorted(taken)]))


def is_known(queue: str) -> bool:
    return queue in declared() or queue in execution_queue().taken_queues()


WORK_OF = {
    WORK: "Refreshing",
    JOBS: "Jobs that name no other queue",
    DELIVERIES: "Notifications and handlers",
    TICKS: "Claims, recovery, reconcile; never paused",
}


def name_of(queue: str) -> str:
    """Name the queue at the beginning of a sentence."""
    return "Refreshing" if queue == WORK else f"The queue {queue}"


def what_of(queue: str) -> str:
    """Say what the work of a queue is."""
    return WORK_OF.get(queue, f"Jobs of the queue {queue}")
