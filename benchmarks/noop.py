"""A Celery app as anybody has it: a task that does nothing, and a Redis that keeps its results.

Two queues, so that a worker can be given the first part of a group and then the rest. Nothing of ours works
in it; the heartbeat that Django's apps bring along looks after nobody here.
"""

import os

from celery import Celery
from celery.signals import worker_init

FIRST, REST = "bench.first", "bench.rest"

app = Celery("bench", set_as_current=False)
app.conf.update(
    broker_url=os.environ.get("REDIS_URL"),
    result_backend=os.environ.get("REDIS_URL"),
    task_serializer="json",
    worker_send_task_events=False,
    worker_hijack_root_logger=True,
)


@app.task(name="bench.noop")
def noop() -> None:
    return None


@worker_init.connect
def leave_our_queue_alone(**_: object) -> None:
    from celery.signals import worker_process_init, worker_ready

    worker_ready.disconnect(dispatch_uid="heartbeat.greet")
    worker_process_init.disconnect(dispatch_uid="heartbeat.start")
