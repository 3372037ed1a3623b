"""Tracked jobs: Celery work as tasks of an execution.

    @app.task(base=TrackedJob)
    def replicate(job, artifact): job.check_in("layer 3 of 7", done=3, of=7)

    execution = start("REPLICATION", vendor_id=7, jobs=[replicate.s(a) for a in artifacts])
    execution.progress(), execution.wait(timeout=60), execution.stop(), execution.retry_failed()

See docs/jobs.md.
"""

from tasks.jobs.end_callbacks import EndedExecution
from tasks.jobs.execution import TrackedExecution
from tasks.jobs.handle import Handle
from tasks.jobs.lifecycle.kept_ends import JobResult
from tasks.jobs.start_call import astart, start
from tasks.jobs.tracked import TrackedJob

__all__ = ["EndedExecution", "Handle", "JobResult", "TrackedExecution", "TrackedJob", "astart", "start"]
