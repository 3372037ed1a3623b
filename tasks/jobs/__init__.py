"""Tracked jobs: Celery work as tasks of an execution.

    @app.task(base=TrackedJob)
    def replicate(job, artifact): job.check_in("layer 3 of 7", done=3, of=7)

    execution = start("REPLICATION", vendor_id=7, jobs=[replicate.s(a) for a in artifacts])
    execution.progress(), execution.wait(timeout=60), execution.stop(), execution.retry_failed()

See docs/jobs.md.
"""

from harbor_refresh.tasks.jobs.end_callbacks import EndedExecution
from harbor_refresh.tasks.jobs.execution import TrackedExecution
from harbor_refresh.tasks.jobs.handle import Handle
from harbor_refresh.tasks.jobs.lifecycle.kept_ends import JobResult
from harbor_refresh.tasks.jobs.start_call import astart, start
from harbor_refresh.tasks.jobs.tracked import TrackedJob

__all__ = ["EndedExecution", "Handle", "JobResult", "TrackedExecution", "TrackedJob", "astart", "start"]
