"""What the scheduled tasks share: a tick is worth nothing once the next one is there.

Any number of beats may send ticks and any number of workers may be away: a tick is not sent while others
still wait, so they never pile up. It expires, but late: expiry compares the clocks of two machines, and a
clock that is a minute off must not stop the schedule.
"""

from typing import Any

from celery import Task, current_app
from celery.result import AsyncResult

from tasks.celery_queues import TICKS, waiting

#: One for each kind of tick, and one more for a wake-up.
ENOUGH = 4
EXPIRES_SECONDS = 3_600


class Tick(Task):  # type: ignore[type-arg]
    abstract = True

    def apply_async(self, *args: Any, **options: Any) -> AsyncResult[Any] | None:  # type: ignore[override]
        """Send the tick, unless enough of them wait already: then None."""
        if waiting(TICKS) >= ENOUGH:
            return None
        options.setdefault("expires", EXPIRES_SECONDS)
        result: AsyncResult[Any] = super().apply_async(*args, **options)
        return result


def send(name: str) -> None:
    """Send the tick of the actor of that name. By its name, because the actors stand above what sends ticks."""
    current_app.tasks[name].apply_async(retry=False)
