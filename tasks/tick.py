"""The base of the scheduled Celery tasks. A tick does all the work that it finds, so one that waits is enough.

A tick is not sent while enough ticks wait in the broker, so they never pile up, however many beats run and
however many workers are away. A tick expires late, because expiry compares the clocks of two machines, and a
clock that is a minute off must not stop the schedule.
"""

from typing import TYPE_CHECKING, Any

from celery import current_app

from harbor_refresh.tasks.actor import Actor
from harbor_refresh.tasks.broker.lengths import waiting
from harbor_refresh.tasks.celery_queues import TICKS

if TYPE_CHECKING:
    from celery.result import AsyncResult

#: No tick is sent while so many wait in the broker.
MAX_WAITING = 4
EXPIRES_SECONDS = 3_600


class Tick(Actor):
    abstract = True
    #: The queue of the broker in which it waits.
    waits_in = TICKS
    #: It is not sent while so many ticks wait there.
    most_waiting = MAX_WAITING

    def apply_async(self, *args: Any, **options: Any) -> "AsyncResult[Any] | None":  # type: ignore[override]
        """Send the tick; return None if enough ticks wait already."""
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
