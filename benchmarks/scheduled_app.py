"""The Celery app of workers without the wake-up: `celery -A benchmarks.scheduled_app worker`.

A process that marks, completes or recovers sends `signals.woken` when a tick is worth sending. Here no receiver
is connected, so only the schedule sends ticks.
"""

from typing import Any

from celery.signals import worker_process_init

from executions.signals import woken
from harbor_refresh.celery import app

__all__ = ["app", "disconnect_wake_up"]


def disconnect_wake_up(**_: Any) -> None:
    """Send no tick from this process because work waits."""
    woken.disconnect(dispatch_uid="tasks.wakeup")


worker_process_init.connect(disconnect_wake_up, dispatch_uid="bench.scheduled")
