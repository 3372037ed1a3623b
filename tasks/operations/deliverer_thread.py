"""The deliverer of a worker process: one thread, made with the first `tasks.deliver` that the process gets."""

import logging
from time import monotonic

from celery import current_app

from harbor_refresh.executions.deliveries import http
from harbor_refresh.executions.deliveries.deliverer import Deliverer
from harbor_refresh.executions.deliveries.handler_runs import due_handlers
from harbor_refresh.executions.deliveries.handler_subscriptions import keep_rows
from harbor_refresh.tasks.broker.celery_queues import DELIVERIES
from harbor_refresh.tasks.broker.pooled import waiting
from harbor_refresh.tasks.jobs.running.per_process import PerProcess
from harbor_refresh.tasks.operations.delivery_wakeup import NextLook
from harbor_refresh.tasks.operations.pauses import paused

log = logging.getLogger("harbor_refresh")

#: While so many messages wait, no worker is asked to run handlers.
MAX_WAITING = 16
#: How old the answer may be whether deliveries are paused.
PAUSE_SECONDS = 1.0


class WorkersDeliverer(Deliverer):
    """The deliverer of a process that also has the code of the handlers."""

    def __init__(self) -> None:
        super().__init__()
        self._next_look = NextLook()
        self._has_rows = False
        self._paused, self._known_until = False, 0.0

    def wake_later(self, seconds: float) -> None:
        self._next_look.plan(seconds)

    def stop(self, seconds: float = 5.0) -> None:
        super().stop(seconds)
        self._next_look.stop()

    def deliver(self) -> None:
        if not self._has_rows:
            keep_rows()
            self._has_rows = True
            if http.has_green_threads():
                log.warning("This worker sends no webhooks, because its pool has green threads: start one without")
        super().deliver()

    def is_held(self) -> bool:
        """Whether the queue of the deliveries is paused. The worker takes no message from it then, but a deliverer
        that has work goes on without messages, so it asks by itself."""
        now = monotonic()
        if now >= self._known_until:
            self._paused, self._known_until = DELIVERIES in paused(), now + PAUSE_SECONDS
        return self._paused

    def ask_handlers(self) -> None:
        """Send a task for each handler that has something to do.

        What if a message is lost: the handler is asked for again a few seconds later.
        """
        for subscription_id in due_handlers():
            try:
                if waiting(DELIVERIES) < MAX_WAITING:
                    current_app.tasks["tasks.run_handlers"].apply_async((subscription_id,), retry=False)
            except Exception as exc:  # any error of the broker's client
                log.warning("Could not ask for a handler, the deliverer will again: %s", exc)
                return


of_this_process = PerProcess(WorkersDeliverer)
