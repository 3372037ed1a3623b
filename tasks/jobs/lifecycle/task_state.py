"""The state of tasks and jobs in the database. Only the database knows whether a job has ended."""

from collections.abc import Sequence
from dataclasses import dataclass

from executions.database import absence_translated
from executions.status import Status, is_final
from tasks.database import run
from tasks.jobs.records.record import UNKNOWN, Acknowledged, JobRecord


@dataclass(frozen=True)
class Stand:
    """The state of a task and its job in the database."""

    task_id: int
    job: str
    status: str
    revision: int
    runs: int
    may_begin: int
    database: str

    @property
    def is_over(self) -> bool:
        return is_final(self.status)

    @property
    def is_running(self) -> bool:
        return self.status == Status.RUNNING

    def looked_for(self, now: int) -> JobRecord:
        """Return a record for a job that runs and has none in Redis: its process has a ttl to replace it."""
        acknowledged = Acknowledged(self.revision, self.status, now)
        return JobRecord(
            self.job,
            self.revision,
            self.status,
            self.runs + 1,
            now,
            UNKNOWN,
            self.task_id,
            acknowledged,
            sent=True,
            message="",
            renewed=now,
        )


def stands(task_ids: Sequence[int]) -> dict[int, Stand]:
    """Return the states by task, without tasks that are gone. Raises DatabaseAway."""
    if not task_ids:
        return {}
    with absence_translated():
        rows = run("standing_jobs", task_ids=list(task_ids))
    known = [Stand(*(*row[:-1], str(row[-1] or ""))) for row in rows]
    return {stand.task_id: stand for stand in known}


def stand_of(task_id: int, job: str) -> Stand | None:
    """Return the state of this job; None if the task is gone or belongs to another job."""
    stand = stands([task_id]).get(task_id)
    return stand if stand and stand.job == job else None
