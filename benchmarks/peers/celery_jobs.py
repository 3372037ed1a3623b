"""The task of Celery's group and chord.

It is acknowledged late and fetched one at a time, as Celery's documentation advises for tasks that must not be
lost. The visibility timeout is Celery's own, an hour.
"""

import os

from celery import Celery

from benchmarks.noop_app import disconnect_heartbeat  # noqa: F401  # these workers claim nothing
from benchmarks.peers import effects

app = Celery("peers", set_as_current=False)
app.conf.update(
    broker_url=os.environ.get("REDIS_URL"),
    result_backend=os.environ.get("REDIS_URL"),
    task_default_queue="bench.peers",
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=1,
    worker_hijack_root_logger=True,
)


@app.task(name="bench.peers.noted")
def noted(number: int) -> None:
    effects.note(number)


@app.task(name="bench.peers.ended")
def ended(results: list[None]) -> int:
    return len(results)
