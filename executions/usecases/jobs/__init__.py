"""What can be done with jobs: the tasks that a worker of ours carries out.

A job is recorded with its task before its message is published, so the database always knows what there is to
do. While it runs, Redis knows on which node (executions/queue/job_records.py). Each turn it takes becomes a
report, and is acknowledged in Redis when the report has landed.
"""

from executions.usecases.jobs.asking import known
from executions.usecases.jobs.landing import RESULT, Turn, land
from executions.usecases.jobs.progress import Progress, progress
from executions.usecases.jobs.publishing import Message, publish_recorded
from executions.usecases.jobs.reaping import Reaped, reap
from executions.usecases.jobs.recovering import recover_jobs
from executions.usecases.jobs.retrying import retry_failed
from executions.usecases.jobs.starting import NewJob, Started, start
from executions.usecases.jobs.stopping import stop_jobs

__all__ = [
    "RESULT",
    "Message",
    "NewJob",
    "Progress",
    "Reaped",
    "Started",
    "Turn",
    "known",
    "land",
    "progress",
    "publish_recorded",
    "reap",
    "recover_jobs",
    "retry_failed",
    "start",
    "stop_jobs",
]
