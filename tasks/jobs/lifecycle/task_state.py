"""Standing: what the database says of jobs. It alone knows whether a job has ended."""

from collections.abc import Sequence
from dataclasses import dataclass

from executions.database import absence_translated
from executions.status import Status, is_final
from tasks.database import run
from tasks.jobs.records.record import UNKNOWN, Acknowledged, JobRecord


@dataclass(frozen=True)
class Stand:
    """A task and its job, as they are in the database."""

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
        """It runs, and Redis knows nothing of it: the process that runs it has a ttl to say so."""
        landed = Acknowledged(self.revision, self.status, now)
        return JobRecord(
            self.job,
            self.revision,
            self.status,
            self.runs + 1,
            now,
            UNKNOWN,
            self.task_id,
            landed,
            sent=True,
            message="",
            renewed=now,
        )


def stands(task_ids: Sequence[int]) -> dict[int, Stand]:
    """By task; without those that are gone. Raises DatabaseAway."""
    if not task_ids:
        return {}
    with absence_translated():
        rows = run("standing_jobs", task_ids=list(task_ids))
    known = [Stand(*(*row[:-1], str(row[-1] or ""))) for row in rows]
    return {stand.task_id: stand for stand in known}


def stand_of(task_id: int, job: str) -> Stand | None:
    """None if the task is gone, or is another job's."""
    stand = stands([task_id]).get(task_id)
    return stand if stand and stand.job == job else None
