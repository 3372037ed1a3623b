"""`tasks.reap`: compare the jobs in progress with what has landed in the database, and settle what differs.

Sent by beat every REFRESH_REAP_INTERVAL_SECONDS, and REFRESH_REAP_DELAY_SECONDS after a worker has started.
"""

from dataclasses import asdict

from celery import shared_task

from tasks.jobs.repair.reaper import reap as reap_jobs
from tasks.jobs.runtime.broker import may_wait
from tasks.tick import Tick


@shared_task(name="tasks.reap", base=Tick)
def reap() -> dict[str, int]:
    return asdict(reap_jobs(may_wait))
