"""`tasks.run_cycle`: one cycle of a design in which every node does its part (REFRESH_STRATEGY but `claim`).

A tick sends it to every live worker at once. It is never acknowledged, for it is never owed: who is away
misses it, and who works longer than the broker's visibility timeout is not given it again. A worker that
still runs a cycle drops it.
"""

from typing import Any

from celery import shared_task

from tasks.celery_queues import CYCLES
from tasks.strategies import older_strategy
from tasks.strategies.worker_lock import alone
from tasks.tick import EXPIRES_SECONDS


@shared_task(name="tasks.run_cycle", acks_late=False)
def run_cycle() -> dict[str, int]:
    older = older_strategy()
    with alone() as free:
        if not free or not older:
            return {"dropped": 1}
        outcome = older.cycle()
    return {"succeeded": outcome.succeeded, "failed": len(outcome.failed)}


def broadcast() -> None:
    run_cycle.apply_async(queue=CYCLES, expires=EXPIRES_SECONDS, retry=False)


def subscribe(instance: Any, **_: Any) -> None:
    """With such a design a worker listens for cycles, whatever other queues it was told to take (-Q)."""
    if older_strategy():
        instance.app.amqp.queues.select_add(CYCLES)
