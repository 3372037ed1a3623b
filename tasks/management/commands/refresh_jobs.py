"""`manage.py refresh_jobs`: look at the jobs, and act on them."""

from executions.management.family import Family
from tasks.management.verbs.jobs import reap, retry, stats, stop

VERBS = {
    "stats": stats,
    "reap": reap,
    "stop": stop,
    "retry": retry,
}


class Command(Family):
    help = "Look at the jobs in progress, and act on those of an execution."
    verbs = VERBS
