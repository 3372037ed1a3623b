"""The state of tasks and jobs in the database. Only the database knows whether a job has ended."""

from collections.abc import Sequence
from dataclasses import dataclass

from harbor_refresh.executions.database import absence_translated
from harbor_refresh.executions.status import Status, is_final
from harbor_refresh.tasks.database import run
from harbor_refresh.tasks.jobs.records.record import UNKNOWN, Acknowledged, JobRecord


@dataclass(frozen=True)
class TaskState:
    """The state of a task and its job in the database."""

    task_id: int
    job: str
    status: str
    revision: int
    runs: int
    may_begin: int
    arguments_revision: int
    database: str

    @property
    def is_final(self) -> bool:
        return is_final(self.status)

    @property
    def is_running(self) -> bool:
        return self.status == Status.RUNNING

    def record_on_unknown_node(self, now: int) -> JobRecord:
        """Return a record for a job that runs and has none in Redis. Its process has a ttl to replace it."""
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


def task_states(task_ids: Sequence[int]) -> dict[int, TaskState]:
    """Return the states by task, without tasks that are gone. Raises DatabaseAway."""
    if not task_ids:
        return {}
    with absence_translated(locks_no_row=True):
        rows = run("task_states", task_ids=list(task_ids))
    known = [TaskState(*(*row[:-1], str(row[-1] or ""))) for row in rows]
    return {state.task_id: state for state in known}


def task_state_of(task_id: int, job: str) -> TaskState | None:
    """Return the state of this job; None if the task is gone or belongs to another job."""
    state = task_states([task_id]).get(task_id)
    return state if state and state.job == job else None


def has_ended(state: TaskState | None, job: str) -> bool:
    """Whether the job has ended: its task is final, was deleted or belongs to another job."""
    return state is None or state.job != job or state.is_final
