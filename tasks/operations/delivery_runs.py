"""The runs of `tasks.deliver`: what wakes them, and what a run does in a worker.

If a wake-up is lost, then recovery sends another one within seconds, if anything is due.
"""

import logging
from collections.abc import Callable
from functools import cache, partial
from typing import Any

from celery import current_app

from harbor_refresh.executions.database import absence_translated
from harbor_refresh.executions.errors import DatabaseDown
from harbor_refresh.executions.lifecycle.lease import Lease
from harbor_refresh.executions.models import StatusChange
from harbor_refresh.executions.news import signals
from harbor_refresh.executions.news.deliveries import answers, deliverer
from harbor_refresh.executions.news.deliveries.claims import with_due
from harbor_refresh.executions.text import said_by
from harbor_refresh.tasks.broker.celery_queues import DELIVERIES
from harbor_refresh.tasks.broker.channels import waiting
from harbor_refresh.tasks.operations.pauses import paused
from harbor_refresh.tasks.pipeline import wakeup
from harbor_refresh.tasks.without_redis import agenda, mode

log = logging.getLogger("harbor_refresh")

NAME, LEASE = "tasks.deliver", "deliver"
#: While so many messages wait, no worker is asked to run handlers. A run is woken while a few more wait, so that
#: handlers, which are in the same queue, do not keep it away.
MAX_WAITING = 16
MAX_WAITING_RUNS = 20


def on_changes_written(**_: Any) -> None:
    """Wake a run. Without Redis this process calls the handlers."""
    if mode.is_on():
        agenda.add_written()
    else:
        _try(partial(wakeup.send, NAME))


def is_paused() -> bool:
    return DELIVERIES in paused()


def recover() -> None:
    """Wake a run for retries whose moment has come, for deliveries of dead processes, and for lost wake-ups."""
    if with_due().exists() or StatusChange.objects.filter(told=False).exists():
        _try(partial(wakeup.send, NAME))


def run() -> None:
    """Deliver what is due, unless deliveries are paused or another run looks for it: one that hangs with a
    receiver is enough.

    If the process dies, then the lease expires, and recovery wakes another run.
    """
    lease = Lease(LEASE)

    def go_on() -> None:
        lease.release()
        _try(current_app.tasks[NAME].go_on)  # type: ignore[attr-defined]  # a Tick

    try:
        with absence_translated():
            _prepare()
            deliverer.go_on_with_handlers()
            if is_paused():
                deliverer.write_deliveries()  # the sweep leaves executions whose changes are not told
                return
            with lease.taken() as other:
                if other:
                    return
                is_done = deliverer.deliver(_ask_handlers, go_on)
            if is_done:  # a run that was asked for while this one had the lease has returned
                deliverer.deliver(_ask_handlers, go_on)
    except DatabaseDown as exc:
        signals.database_down.send(sender=run, count=0, error=str(exc))


@cache
def _prepare() -> None:
    """Do what a process does once, with its first run."""
    deliverer.keep_rows()
    if answers.has_green_threads():
        log.warning("This worker sends no webhooks, because its pool has green threads: start one without")


def _ask_handlers() -> None:
    """Send a task for each handler that has something to do.

    If a message is lost, then the handler is asked for again a few seconds later.
    """
    for subscription_id in deliverer.due_handlers():
        try:
            if waiting(DELIVERIES) < MAX_WAITING:
                current_app.tasks["tasks.run_handlers"].apply_async((subscription_id,), retry=False)
        except Exception as exc:  # any error of the broker's client
            log.warning("Could not ask for a handler, the deliverer will again: %s", exc)
            return


def _try(send: Callable[[], object]) -> None:
    try:
        send()
    except Exception as exc:  # of the database, or of the broker's client: the caller's work is committed
        log.warning("Could not wake a deliverer, the schedule will: %s", said_by(exc))
