"""The bases of our Celery tasks (tasks/celery_tasks.py)."""

from typing import TYPE_CHECKING, Any

from celery import Task, current_app

from harbor_refresh.tasks.broker.celery_queues import TICKS
from harbor_refresh.tasks.broker.channels import waiting

if TYPE_CHECKING:
    from celery.result import AsyncResult

MAX_WAITING = 4
EXPIRES_SECONDS = 3_600


class Actor(Task):  # type: ignore[type-arg]
    """Its options do not depend on the settings of the project. A message is acknowledged when its task has ended,
    and goes back to the broker when its process dies. No result is stored."""

    abstract = True
    acks_late = True
    reject_on_worker_lost = True
    #: It would override the option above, and drop the message after a few deaths.
    retry_on_worker_lost = False
    ignore_result = True


class Tick(Actor):
    """A scheduled task. It is not sent while `most_waiting` messages wait in its queue of the broker, so ticks do
    not pile up, however many beats run and however many workers are away. It expires late, because expiry compares
    the clocks of two machines, and a clock that is a minute off must not stop the schedule."""

    abstract = True
    waits_in = TICKS
    most_waiting = MAX_WAITING

    def apply_async(self, *args: Any, **options: Any) -> "AsyncResult[Any] | None":  # type: ignore[override]
        if waiting(self.waits_in) >= self.most_waiting:
            return None
        options.setdefault("expires", EXPIRES_SECONDS)
        result: AsyncResult[Any] = super().apply_async(*args, **options)
        return result

    def go_on(self, *args: Any, after: float = 0) -> None:
        """Send the rest of the running tick, however many ticks wait: it takes the place of the running one."""
        super().apply_async(args, countdown=after, expires=EXPIRES_SECONDS)


def send(name: str) -> None:
    """Send the tick of the Celery task of that name. The task is not imported, because it imports the modules
    that send ticks."""
    current_app.tasks[name].apply_async(retry=False)
