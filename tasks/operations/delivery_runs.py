"""The runs of `tasks.deliver`: what wakes them, and what a run does in a worker.

What if a wake-up is lost: recovery sends another one within seconds, if anything is due.
"""

import logging
from contextlib import suppress
from functools import cache, partial
from time import monotonic
from typing import Any

from celery import current_app

from harbor_refresh.executions.deliveries import http
from harbor_refresh.executions.deliveries.deliverer import RUN_SECONDS, deliver
from harbor_refresh.executions.deliveries.handler_runs import due_handlers
from harbor_refresh.executions.deliveries.handler_subscriptions import keep_rows
from harbor_refresh.executions.deliveries.outbox import is_due
from harbor_refresh.executions.errors import DatabaseAway, QueueUnavailable
from harbor_refresh.executions.news import signals
from harbor_refresh.executions.text import said_by
from harbor_refresh.tasks.broker.celery_queues import DELIVERIES
from harbor_refresh.tasks.broker.pooled import waiting
from harbor_refresh.tasks.pipeline import tick
from harbor_refresh.tasks.queue import execution_queue
from harbor_refresh.tasks.without_redis import agenda, mode

log = logging.getLogger("harbor_refresh")

NAME = "tasks.deliver"
#: While so many messages wait, no worker is asked to run handlers.
MAX_WAITING = 16


def on_changes_written(**_: Any) -> None:
    """Wake a run. Without Redis this process calls the handlers."""
    if mode.is_on():
        agenda.add_written()
    else:
        _wake()


def on_worker_ready(**_: Any) -> None:
    tick.send(NAME)


def wake_if_due() -> None:
    """Wake a run for retries whose moment has come, for deliveries of dead processes, and for lost wake-ups."""
    if is_due():
        _wake()


def run() -> None:
    """Deliver what is due. While the run looks for it by itself, no other one is woken.

    What if a change is committed after the last look and before wake-ups are sent again: the run looks once more.
    What if the process dies: the key of the wake-up expires, and the broker delivers the message again.
    """
    go_on = partial(_wake, goes_on=True)
    until = monotonic() + RUN_SECONDS
    _prepare()
    try:
        with suppress(QueueUnavailable):
            execution_queue().hold_wakes(RUN_SECONDS)
        if deliver(_ask_handlers, go_on, until):
            with suppress(QueueUnavailable):
                execution_queue().allow_wakes()
            deliver(_ask_handlers, go_on, until)
    except DatabaseAway as exc:
        signals.database_away.send(sender=run, count=0, error=str(exc))


@cache
def _prepare() -> None:
    """Do what a process does once, with its first run."""
    keep_rows()
    if http.has_green_threads():
        log.warning("This worker sends no webhooks, because its pool has green threads: start one without")


def _ask_handlers() -> None:
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


def _wake(*, goes_on: bool = False) -> None:
    """Send `tasks.deliver`, unless it was sent within the last second or a run looks at this moment. A run that
    `goes_on` in another one sends it in any case."""
    try:
        if goes_on:
            current_app.tasks[NAME].go_on()  # type: ignore[attr-defined]  # a Tick
        elif execution_queue().wake_deliverer():
            tick.send(NAME)
    except Exception as exc:  # ours, or any of the broker's client: the caller's work is committed
        error = str(exc) if isinstance(exc, QueueUnavailable) else said_by(exc)
        log.warning("Could not wake a deliverer, the schedule will: %s", error)
