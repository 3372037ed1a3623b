"""Tracked jobs: Celery work as tasks of an execution.

    @app.task(base=TrackedJob)
    def replicate(job, artifact): job.check_in("layer 3 of 7", done=3, of=7)

    execution = start("REPLICATION", vendor_id=7, jobs=[replicate.s(a) for a in artifacts])
    execution.progress(), execution.wait(timeout=60), execution.stop(), execution.retry_failed()

One row owns where a job is (docs/explanation/architecture.md has the statements and what each refuses,
docs/howto/jobs.md what a project sees):

    start, add ──> waiting ──pick──> sent ──begin──> running ──end──> ended
                    ^ ^               │ └─ resend       │              │
                    │ └──── pause ────┘                 │              │
                    ├──────────── retry, release ───────┘              │
                    └──────────── retry_failed, resume_stopped ────────┘

A stop ends a job in any state.
"""

from harbor_refresh.tasks.jobs.end_callbacks import EndedExecution
from harbor_refresh.tasks.jobs.running.handle import Handle
from harbor_refresh.tasks.jobs.running.kept_ends import JobResult
from harbor_refresh.tasks.jobs.running.tracked import TrackedJob
from harbor_refresh.tasks.jobs.starting.canvas import PlannedJob, job, needs
from harbor_refresh.tasks.jobs.starting.start import astart, start
from harbor_refresh.tasks.jobs.tracked_execution import TrackedExecution

__all__ = [
    "EndedExecution",
    "Handle",
    "JobResult",
    "PlannedJob",
    "TrackedExecution",
    "TrackedJob",
    "astart",
    "job",
    "needs",
    "start",
]
