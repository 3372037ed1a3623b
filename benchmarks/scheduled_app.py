"""The Celery app of workers without the wake-up: `celery -A benchmarks.scheduled_app worker`.

A process that marks, completes or recovers sends a tick when one is worth sending. Here it sends none, so only the
schedule does.
"""

from typing import Any

from celery.signals import worker_process_init

from harbor_refresh.celery import app

__all__ = ["app", "disconnect_wake_up"]


def disconnect_wake_up(**_: Any) -> None:
    """Send no tick from this process because work waits.

    Models can be imported now, and could not when Celery loaded this module.
    """
    from harbor_refresh.tasks.pipeline import wakeup

    wakeup.send_tick = lambda: None


worker_process_init.connect(disconnect_wake_up, dispatch_uid="bench.scheduled")
