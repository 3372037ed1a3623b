"""`tasks.recover_stale`: give back what dead nodes had claimed and begun, a few seconds after they fell silent.

Sent by beat every REFRESH_RECOVER_INTERVAL_SECONDS, and by every worker that starts.
"""

from celery import shared_task

from executions.usecases import recover
from executions.usecases.jobs import recover_jobs
from tasks.jobs.publishing import may_wait, publish
from tasks.queues import WORK, waiting
from tasks.tick import Tick


@shared_task(name="tasks.recover_stale", base=Tick)
def recover_stale() -> int:
    count = recover(idle=not waiting(WORK))
    return count + recover_jobs(publish, may_wait).given_back
