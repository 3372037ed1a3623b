"""A worker that wakes nobody: `celery -A benchmarks.asleep worker`, for the measure without wake-ups.

Whoever marks, completes or recovers tells by `signals.woken` that a tick is worth sending. With nobody
listening, the ticks of the schedule are all there is.
"""

from typing import Any

from celery.signals import worker_process_init

from executions.signals import woken
from harbor_refresh.celery import app

__all__ = ["app", "fall_asleep"]


def fall_asleep(**_: Any) -> None:
    """Nobody in this process sends a tick because work waits."""
    woken.disconnect(dispatch_uid="tasks.wakeup")


worker_process_init.connect(fall_asleep, dispatch_uid="bench.asleep")
