"""`tasks.deliver`: start the deliverer of a worker process, which tells webhooks and handlers of status changes.

Beat sends it every REFRESH_DELIVER_INTERVAL_SECONDS. A refresh sends it after its commit if something is to be
told, and each worker at its start. It is a task of a moment: the deliverer is a thread of the process, so a
receiver that hangs holds no process of a worker.
"""

from celery import shared_task

from harbor_refresh.tasks.celery_queues import DELIVERIES
from harbor_refresh.tasks.notifications.deliverer_thread import of_this_process
from harbor_refresh.tasks.tick import Tick


@shared_task(name="tasks.deliver", base=Tick, waits_in=DELIVERIES)
def deliver() -> None:
    of_this_process.get().wake()
