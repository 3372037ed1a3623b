"""A Celery app without the product: a task that does nothing, and a Redis result backend.

The heartbeat that the Django apps connect is disconnected, because these workers claim nothing.
"""

import os

from celery import Celery
from celery.signals import worker_init

QUEUE = "bench.group"

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
def disconnect_heartbeat(**_: object) -> None:
    from celery.signals import worker_process_init, worker_ready

    worker_ready.disconnect(dispatch_uid="wakeup.send_first")
    worker_process_init.disconnect(dispatch_uid="heartbeat.start")
