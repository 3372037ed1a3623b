"""`tasks.reap`: compare the jobs in progress with the database, and settle what differs.

Beat sends it every REFRESH_REAP_INTERVAL_SECONDS, and a worker REFRESH_REAP_DELAY_SECONDS after its start.
"""

from dataclasses import asdict

from celery import shared_task

from harbor_refresh.tasks.jobs.repair.reaper import reap as reap_jobs
from harbor_refresh.tasks.jobs.runtime.broker import may_wait
from harbor_refresh.tasks.tick import Tick


@shared_task(name="tasks.reap", base=Tick)
def reap() -> dict[str, int]:
    return asdict(reap_jobs(may_wait))
