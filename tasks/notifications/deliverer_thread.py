"""The deliverer of a worker process: one thread, made with the first `tasks.deliver` that the process gets."""

import logging

from celery import current_app

from executions.deliveries.deliverer import Deliverer
from executions.deliveries.handler_runs import due_handlers
from executions.deliveries.handler_subscriptions import keep_rows
from tasks.celery_queues import DELIVERIES, waiting
from tasks.jobs.runtime.per_process import PerProcess

log = logging.getLogger("harbor_refresh")

#: While so many messages wait, no worker is asked to run handlers.
MAX_WAITING = 16


class WorkersDeliverer(Deliverer):
    """The deliverer of a process that also has the code of the handlers."""

    def __init__(self) -> None:
        super().__init__(ask_handlers=self._ask)
        self._has_rows = False

    def deliver(self) -> None:
        if not self._has_rows:
            keep_rows()
            self._has_rows = True
        super().deliver()

    def _ask(self) -> None:
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
