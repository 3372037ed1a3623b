"""The queues of the broker that there are: those of the Celery app, and those that the database knows."""

from celery import current_app

from harbor_refresh.executions.database import absence_translated
from harbor_refresh.tasks.broker.celery_queues import CYCLES, DELIVERIES, JOBS, TICKS, WORK
from harbor_refresh.tasks.jobs.sender import queues_with_jobs
from harbor_refresh.tasks.models import Pause
from harbor_refresh.tasks.models.job import Node


def declared() -> list[str]:
    """Return the queues that the settings of the Celery app declare. The default one is among them."""
    conf = current_app.conf
    return list(dict.fromkeys([*(queue.name for queue in conf.task_queues or ()), conf.task_default_queue]))


def known() -> list[str]:
    """Return the declared queues, and then the other ones that a live worker takes from, that are paused, or that
    have jobs to send or to begin. Raises DatabaseAway."""
    with absence_translated():
        found = {*Pause.objects.values_list("queue", flat=True)}
        found.update(*Node.objects.values_list("queues", flat=True))
    found.update(queues_with_jobs())
    return list(dict.fromkeys([*declared(), *sorted(found - {CYCLES.name})]))


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
