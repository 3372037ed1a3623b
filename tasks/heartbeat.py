"""Signs of life: one thread in every process of a worker that works claims.

A process that falls silent for REFRESH_NODE_TTL_SECONDS is taken for dead and its claims and jobs are given
back. The first of the others to notice asks for that at once; should it die before it has, the schedule does.
With each sign of life the leases of the jobs that run here are renewed, so a Redis that has forgotten them, or
came back older, is told again.
A sign of life is not a sign of progress: a claim that is too old goes back whatever its node says.
"""

import logging
import os
import threading
from typing import Any

from celery import signals

from executions.errors import QueueUnavailable
from tasks import tick
from tasks.conf import refresh_settings
from tasks.jobs.records.run import Run
from tasks.jobs.runtime import current_runs
from tasks.queue import execution_queue
from tasks.queue.node import this_node

log = logging.getLogger("harbor_refresh")

_stop = threading.Event()
_beating_in = 0  # the process that has a heartbeat; a fork's child has none


def beat_until_stopped() -> None:
    silent = False
    asking: threading.Thread | None = None
    interval = refresh_settings().heartbeat
    while True:
        try:
            forgotten = current_runs.renew()  # first: a lease never outlives the node
            beats = [execution_queue().heartbeat(node) for node in {this_node.name, *current_runs.nodes()}]
        except QueueUnavailable as exc:
            if not silent:
                log.warning("%s gives no sign of life: %s", this_node.name, exc)
            silent = True
        else:
            silent = False
            if forgotten:
                asking = ask_about(forgotten, asking)
            if any(beat.dead for beat in beats):
                ask_for_recovery()
        if _stop.wait(interval):
            return


def ask_about(forgotten: list[Run], asking: threading.Thread | None) -> threading.Thread:
    """In a thread of its own, one at a time: a database that hangs must not hold up the signs of life."""
    if asking and asking.is_alive():
        return asking
    asking = threading.Thread(target=current_runs.record_anew, args=(forgotten,), name="asking", daemon=True)
    asking.start()
    return asking


def ask_for_recovery() -> None:
    try:
        tick.send("tasks.recover_stale")
    except Exception as exc:  # whatever the broker's client raises: the schedule asks, too
        log.warning("Could not ask for recovery, the schedule will in a few seconds: %s", exc)


def start(**_: Any) -> None:
    """Once a process. Pools without processes of their own say nothing at their start: there the first task
    does."""
    global _beating_in  # noqa: PLW0603
    if _beating_in == os.getpid():
        return
    _beating_in = os.getpid()
    _stop.clear()
    threading.Thread(target=beat_until_stopped, name="heartbeat", daemon=True).start()


def stop(**_: Any) -> None:
    _stop.set()


def greet(sender: Any, **_: Any) -> None:
    """A worker that starts looks at once for what its predecessor left, and for what waits; and later for what
    is left of its jobs. The wait is spent here: a message that waits would come back from the broker."""
    tick.send("tasks.recover_stale")
    later = threading.Timer(refresh_settings().reap_delay, tick.send, ["tasks.reap"])
    later.daemon = True
    later.start()


def connect() -> None:
    signals.worker_process_init.connect(start, dispatch_uid="heartbeat.start")
    signals.task_prerun.connect(start, dispatch_uid="heartbeat.start_late")
    signals.worker_process_shutdown.connect(stop, dispatch_uid="heartbeat.stop")
    signals.worker_ready.connect(greet, dispatch_uid="heartbeat.greet")
