"""`tasks.run_handlers`: call one handler for the status changes that are due for it.

The deliverer sends it. A handler has a task of its own, so a slow one delays neither webhooks nor other handlers.

A run ends before the lease of its claim does, so that a call that hangs takes one process, and not another one
with each lease. The run begins its last call within RUN_SECONDS, so each call may take CALL_SECONDS at least, and
SOFT_SECONDS at most. Then Celery raises an exception in it, and the call has failed like one that raises. If the
call takes no notice, Celery kills its process; the attempt counts and has no result, as if the call had ended its
process by itself.

The pool of processes has both limits; that of gevent has the second one alone, which ends the call and not the
process. The other pools have none.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from celery import shared_task
from celery.exceptions import SoftTimeLimitExceeded
from django.db import connections

from harbor_refresh.executions.deliveries.handler_runs import LEASE_SECONDS, RUN_SECONDS, run_handler
from harbor_refresh.tasks.actor import Actor

SOFT_SECONDS = int(LEASE_SECONDS) - 10
HARD_SECONDS = int(LEASE_SECONDS) - 5
CALL_SECONDS = SOFT_SECONDS - int(RUN_SECONDS)


@shared_task(name="tasks.run_handlers", base=Actor, soft_time_limit=SOFT_SECONDS, time_limit=HARD_SECONDS)
def run_handlers(subscription_id: int) -> None:
    if run_handler(subscription_id, _limited):
        run_handlers.delay(subscription_id)


@contextmanager
def _limited() -> Iterator[None]:
    """Say what the limit is. A connection may be in the middle of a query and can make no other one, so all are
    closed."""
    try:
        yield
    except SoftTimeLimitExceeded as exc:
        connections.close_all()
        raise TimeoutError(f"the call took longer than {CALL_SECONDS} s") from exc
