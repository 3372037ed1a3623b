"""Send heartbeats: one thread in every worker process that works claims.

A process that is silent for NODE_TTL_SECONDS counts as dead, and its claims are recovered. The first process that
notices asks for the recovery at once; if it dies before, the schedule asks. A heartbeat is no sign of progress: a
claim that is too old is recovered even if its node is alive. The heartbeat for jobs: tasks/jobs/live_workers.py.
"""

import logging
import threading
from contextlib import suppress
from typing import Any

from harbor_refresh.executions.errors import QueueUnavailable
from harbor_refresh.tasks.conf import pacing
from harbor_refresh.tasks.pipeline import wakeup
from harbor_refresh.tasks.pipeline.per_process import PerProcess
from harbor_refresh.tasks.queue import brief_queue, execution_queue
from harbor_refresh.tasks.queue.node import this_node
from harbor_refresh.tasks.without_redis import mode

log = logging.getLogger("harbor_refresh")


class Heartbeat:
    def __init__(self) -> None:
        self._is_over = threading.Event()
        threading.Thread(target=send_until, args=(self._is_over,), name="heartbeat", daemon=True).start()

    def stop(self) -> None:
        """Stop, and note it in Redis: a node that falls silent without this note is shown as dead. If Redis is
        down, the note is lost."""
        self._is_over.set()
        with suppress(QueueUnavailable):
            brief_queue().leave(this_node.name)


of_this_process = PerProcess(Heartbeat)


def send_until(is_over: threading.Event) -> None:
    silent, interval = False, pacing.HEARTBEAT_SECONDS
    while True:
        try:
            dead = execution_queue().heartbeat(this_node.name)
        except QueueUnavailable as exc:
            if not silent:
                log.warning("%s gives no sign of life: %s", this_node.name, exc)
            silent = True
        else:
            silent = False
            if dead:
                try:
                    wakeup.send("tasks.recover_stale")
                except Exception as exc:  # any error of the broker's client, because the schedule asks as well
                    log.warning("Could not ask for recovery, the schedule will in a few seconds: %s", exc)
        if is_over.wait(interval):
            return


def start(task: Any = None, **_: Any) -> None:
    """Start the heartbeat of this process; in a pool without processes, the first task starts it, unless it was
    called as a function, which any program may do."""
    if not mode.is_on() and not (task and task.request.is_eager):
        of_this_process.get()
