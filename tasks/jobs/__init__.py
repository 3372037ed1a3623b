"""Tracked jobs: Celery work as tasks of an execution.

    @app.task(base=TrackedJob)
    def replicate(job, artifact): job.check_in("layer 3 of 7", done=3, of=7)

    execution = start("REPLICATION", vendor_id=7, jobs=[replicate.s(a) for a in artifacts])
    execution.progress(), execution.wait(timeout=60), execution.stop(), execution.retry_failed()

One row owns where a job is (docs/explanation/architecture.md has more, docs/howto/jobs.md what a project sees):

    start, add ──> waiting ──pick──> sent ──begin──> running ──end──> ended
                      ^               │                 │              │
                      │               └─ resend         │              │
                      ├─────────── retry, release ──────┘              │
                      └──────────── retry_failed, resume_stopped ──────┘

A stop ends a job in any state.

| transition           | statement (sql/)                | called by                                   | refuses                         |
| -------------------- | ------------------------------- | ------------------------------------------- | ------------------------------- |
| -> waiting           | create_jobs                     | starting/records.py                         | a unique key that is held       |
| waiting -> sent      | due, admit, pick                | sender.py                                   | unmet, later, limit, no room    |
| sent -> sent         | resend                          | sender.py                                   | not overdue, no idle slots      |
| sent -> running      | begin                           | outcomes.py (running/tracked.py)            | another run, job, state or node |
| running -> waiting   | hold_runs, wait_again           | outcomes.py (running/tracked.py, reaper.py) | another run                     |
| running, sent -> end | hold_runs, end_with_their_tasks | outcomes.py (running/writer.py, messages/…) | another run                     |
| any -> ended         | end_with_their_tasks, a trigger | the end of the task, by any writer          | a final task                    |
| ended -> waiting     | run_again                       | again.py                                    | another status, a key held      |
"""  # noqa: E501  # a table

from harbor_refresh.tasks.jobs.end_callbacks import EndedExecution
from harbor_refresh.tasks.jobs.execution import TrackedExecution
from harbor_refresh.tasks.jobs.running.handle import Handle
from harbor_refresh.tasks.jobs.running.kept_ends import JobResult
from harbor_refresh.tasks.jobs.running.tracked import TrackedJob
from harbor_refresh.tasks.jobs.starting.canvas import PlannedJob, job, needs
from harbor_refresh.tasks.jobs.starting.start import astart, start

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
