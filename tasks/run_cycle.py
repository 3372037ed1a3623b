"""`tasks.run_cycle`: run a cycle of a design in which every node does its part, which is any but `claim`.

A tick sends it to every live worker at once. It is not acknowledged, so it is never delivered again: a worker
that is away misses it, and a worker that takes longer than the broker's visibility timeout does not get it
twice. A worker that still runs a cycle drops it.
"""

from typing import Any

from celery import shared_task

from harbor_refresh.tasks.actor import Actor
from harbor_refresh.tasks.celery_queues import CYCLES
from harbor_refresh.tasks.strategies import older_strategy
from harbor_refresh.tasks.strategies.worker_mutex import worker_mutex
from harbor_refresh.tasks.tick import EXPIRES_SECONDS


@shared_task(name="tasks.run_cycle", base=Actor, acks_late=False)
def run_cycle() -> dict[str, int]:
    older = older_strategy()
    with worker_mutex.try_lock() as locked:
        if not locked or not older:
            return {"dropped": 1}
        outcome = older.cycle()
    return {"succeeded": outcome.succeeded, "failed": len(outcome.failed)}


def broadcast() -> None:
    run_cycle.apply_async(queue=CYCLES, expires=EXPIRES_SECONDS, retry=False)


def subscribe(instance: Any, **_: Any) -> None:
    """Make the worker listen for cycles with such a design, whatever queues it was told to take (-Q)."""
    if older_strategy():
        instance.app.amqp.queues.select_add(CYCLES)
