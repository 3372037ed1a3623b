"""The handle of a job: the first argument of its function; and the begin of the run that it is for."""

import json
import time
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, Self

from harbor_refresh.executions.database import absence_translated
from harbor_refresh.executions.errors import Refused
from harbor_refresh.executions.status import Status
from harbor_refresh.executions.text import is_whole, made_storable, shown
from harbor_refresh.tasks.jobs import sender
from harbor_refresh.tasks.jobs.limits import is_limited
from harbor_refresh.tasks.jobs.outcomes import MAX_MESSAGE, Outcome, Run, take
from harbor_refresh.tasks.jobs.running import writer
from harbor_refresh.tasks.jobs.running.coroutines import outside_of_the_loop
from harbor_refresh.tasks.jobs.sql import run
from harbor_refresh.tasks.jobs.tracked_execution import TrackedExecution
from harbor_refresh.tasks.models.job import Job, JobState
from harbor_refresh.tasks.without_redis import mode

if TYPE_CHECKING:
    from celery import Task

#: Counts bytes as well. Every program that reads JSON knows this number exactly.
MAX_OF = 10**15


@dataclass(frozen=True)
class JobCheckIn:
    """What a job says of its progress while it runs. `done` and `of` are both None if it gave no numbers."""

    message: str = ""
    done: int | None = None
    of: int | None = None

    @classmethod
    def made(cls, message: str, done: Any, of: Any) -> Self:
        """Return a check-in of these values. Raises ValueError for numbers that are no progress."""
        if (done is not None or of is not None) and not (is_whole(of, 0, MAX_OF) and is_whole(done, 0, of)):
            raise ValueError(
                "check_in takes done and of together, whole numbers with 0 <= done <= of <= 10^15, "
                f"and got done={shown(done)}, of={shown(of)}"
            )
        return cls(made_storable(message)[:MAX_MESSAGE], done, of)

    @property
    def share(self) -> float | None:
        """The share that is done, 0 to 1; None without numbers. Of nothing, all is done."""
        return None if self.done is None or self.of is None else self.done / self.of if self.of else 1.0


@dataclass(frozen=True)
class Begun:
    """A run that has begun, with what the row knows for it."""

    run: Run
    args: list[Any]
    kwargs: dict[str, Any]
    retries: int
    is_needed: bool
    may_begin: int
    queue: str
    has_expired: bool = False


def begin(task_id: int, job: str, number: int, worker: int, process: int) -> Begun | None:
    """Begin the run of a message: sent -> running. None if the message is a copy, comes late, or is for another
    database. Raises DatabaseDown."""
    with absence_translated():
        rows = run("begin", task_id=task_id, job=job, run=number, node=worker, process=process)
    if not rows:
        return None
    [(number, revision, retries, args, kwargs, *rest)] = rows
    its = Run(task_id, job, number, revision, worker, process)
    return Begun(its, json.loads(args), json.loads(kwargs), retries, *rest)


class Handle:
    """The first argument of a job's function: one run of the job."""

    def __init__(self, task: "Task[Any, Any]", given: Begun) -> None:
        self._task, self.given = task, given
        self.was_told_to_stop = self.is_settled = False
        #: Why it asked for another try.
        self.reason = ""
        #: For the writer: JSON of the last check-in, and how often something was heard, all in all and as written.
        self.said: str | None = None
        self.heard = self.written = 0
        self.began = time.monotonic()
        self.is_lost = self.is_shown = False
        if not mode.is_eager():
            writer.of_this_process.get().begin(self)

    @property
    def run(self) -> Run:
        return self.given.run

    @property
    def execution(self) -> TrackedExecution:
        """The execution of this job, read from the database; for example `job.execution.add(jobs=[...])`. While a
        job runs, its execution does not end."""
        return outside_of_the_loop(lambda: TrackedExecution.objects.get(tasks=self.run.task_id))

    def check_in(self, message: str = "", *, done: int | None = None, of: int | None = None) -> None:
        """Report progress. A check-in replaces the previous one, and is written within a second. A job without a
        check-in for REFRESH_JOB_HOURS ends as Error.

        Args:
            message: The progress in words.
            done: How much is done, as a whole number from 0 to `of`.
            of: How much there is in total.
        """
        self.said = json.dumps(asdict(JobCheckIn.made(message, done, of)))
        self.heard += 1  # after it: the writer reads them the other way round

    def should_stop(self) -> bool:
        """Return whether the execution was stopped, or this run was replaced because its worker seemed dead. The
        answer is at most two seconds old. If the job returns after True, it ends as Stopped."""
        self.heard += 1
        if mode.is_eager():  # no writer asks for it
            stands = Job.objects.filter(pk=self.run.task_id, run=self.run.number, state=JobState.RUNNING)
            self.is_lost = self.is_lost or not outside_of_the_loop(stands.exists)
        self.was_told_to_stop = self.was_told_to_stop or self.is_lost
        return self.was_told_to_stop

    def retry(self, **options: Any) -> NoReturn:
        """Run the job again later, as `Task.retry` of Celery does. The execution stays Running.

        It takes `args`, `kwargs`, `exc`, `countdown`, `eta` and `max_retries`. If only one of `args` and `kwargs`
        is given, the other stays.
        """
        raise self._task.retry(**options)

    def take(self, status: Status, message: str = "", **what: Any) -> None:
        """Have this run end, or wait for another one. It is written soon."""
        message = made_storable(message)[:MAX_MESSAGE]
        what |= {"is_needed": self.given.is_needed, "is_limited": is_limited(self._task)}
        outcome = Outcome(self.run, status, message, queue=self.given.queue, **what)
        if mode.is_eager():
            outside_of_the_loop(partial(take, [outcome]))
            outside_of_the_loop(partial(sender.send_behind, [outcome.queue], [outcome]))
        else:
            writer.of_this_process.get().end(outcome, self)
        self.is_settled = True


class Untracked(Handle):
    """The handle of a job that was called like a function, or sent without an execution. It is not tracked."""

    def __init__(self, task: "Task[Any, Any]") -> None:
        self._task, self.heard = task, 0
        self.given = Begun(Run(0, "", 0), [], {}, 0, is_needed=False, may_begin=0, queue="")

    def should_stop(self) -> bool:
        return False

    @property
    def execution(self) -> TrackedExecution:
        raise Refused("this job was called like a function, so it belongs to no execution")
