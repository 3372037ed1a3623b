"""What can be done with jobs: the tasks that a worker of ours carries out.

A job is recorded with its task before its message is published, so the database always knows what there is to
do. While it runs, Redis knows on which node (executions/queue/job_records.py). Each turn it takes becomes a
report, and is acknowledged in Redis when the report has landed.
"""

from executions.usecases.jobs.beginning import begin
from executions.usecases.jobs.choosing import Chosen, choose, executions_with_jobs, for_each
from executions.usecases.jobs.counting import Counted, Passes, counted
from executions.usecases.jobs.ending import end_running, end_waiting, send_again
from executions.usecases.jobs.landing import Landed, land
from executions.usecases.jobs.looking import Look, Seen, look, look_at
from executions.usecases.jobs.progress import Progress, progress
from executions.usecases.jobs.publishing import Message, publish_recorded
from executions.usecases.jobs.reaping import MayWait, Reaped, reap
from executions.usecases.jobs.recovering import Recovered, recover_jobs
from executions.usecases.jobs.retrying import retry_failed
from executions.usecases.jobs.standing import Stand, stands
from executions.usecases.jobs.starting import MAX_ATTEMPTS, NewJob, Started, start
from executions.usecases.jobs.stopping import stop_jobs
from executions.usecases.jobs.turn import AGAIN, RESULT, Arguments, Turn
from executions.usecases.jobs.uncommitted import is_uncommitted

__all__ = [
    "AGAIN",
    "MAX_ATTEMPTS",
    "RESULT",
    "Arguments",
    "Chosen",
    "Counted",
    "Landed",
    "Look",
    "MayWait",
    "Message",
    "NewJob",
    "Passes",
    "Progress",
    "Reaped",
    "Recovered",
    "Seen",
    "Stand",
    "Started",
    "Turn",
    "begin",
    "choose",
    "counted",
    "end_running",
    "end_waiting",
    "executions_with_jobs",
    "for_each",
    "is_uncommitted",
    "land",
    "look",
    "look_at",
    "progress",
    "publish_recorded",
    "reap",
    "recover_jobs",
    "retry_failed",
    "send_again",
    "stands",
    "start",
    "stop_jobs",
]
