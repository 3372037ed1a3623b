"""`tasks.recover_stale`: give back what dead nodes had claimed, a few seconds after they fell silent.

Sent by beat every REFRESH_RECOVER_INTERVAL_SECONDS, and by every worker that starts.
"""

from celery import shared_task

from executions.usecases import recover
from tasks.queues import WORK, waiting
from tasks.tick import Tick


@shared_task(name="tasks.recover_stale", base=Tick)
def recover_stale() -> int:
    return recover(idle=not waiting(WORK))
