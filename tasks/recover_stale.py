"""`tasks.recover_stale`: give back what dead nodes had claimed and begun, a few seconds after they fell silent.

Sent by beat every REFRESH_RECOVER_INTERVAL_SECONDS, and by every worker that starts.
"""

from celery import shared_task

from tasks.celery_queues import WORK, waiting
from tasks.jobs.repair.job_recovery import recover_jobs
from tasks.jobs.runtime.broker import may_wait, publish
from tasks.pipeline.recovery import recover
from tasks.tick import Tick


@shared_task(name="tasks.recover_stale", base=Tick)
def recover_stale() -> int:
    count = recover(idle=not waiting(WORK))
    return count + recover_jobs(publish, may_wait).given_back
