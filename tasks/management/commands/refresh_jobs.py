"""`manage.py refresh_jobs`: look at the jobs, and act on them."""

from harbor_refresh.tasks.management.command import WaitsOnceCommand
from harbor_refresh.tasks.management.verbs.jobs import job_stats, new_name, reap, retry, running, stop

VERBS = {
    "stats": job_stats,
    "running": running,
    "reap": reap,
    "stop": stop,
    "retry": retry,
    "new-name": new_name,
}


class Command(WaitsOnceCommand):
    help = "Look at the jobs in progress, and act on those of an execution."
    verbs = VERBS
