"""Start: record an execution and its jobs, all or nothing, and ask for their messages after the commit."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any
from uuid import uuid4

from django.db import IntegrityError, OperationalError, transaction

from executions import signals
from executions.errors import AlreadyUnderWay, Refused
from executions.models import Execution, Job
from executions.text import json_text
from executions.usecases.creating import BATCH, NewExecution, NewTask, create
from executions.usecases.jobs.uniqueness import key_of, taken
from executions.usecases.setting import mark_done

#: So often two who start the same unique jobs at once may collide before one of them gives up.
TRIES = 3
MAX_ATTEMPTS = 32_767


@dataclass(frozen=True)
class NewJob:
    """`takes_result`: of the job before it in its chain, as its first argument."""

    name: str
    args: Sequence[Any] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    max_attempts: int = 5
    is_unique: bool = False
    takes_result: bool = False
    job_id: str = field(default_factory=lambda: str(uuid4()))

    @property
    def key(self) -> str | None:
        return key_of(self.name, self.args, self.kwargs) if self.is_unique else None


#: Jobs that run one after the other. A job by itself is a chain of one.
Chain = Sequence[NewJob]


@dataclass(frozen=True)
class Started:
    """`left_out`: chains with a unique job that is queued or running already."""

    execution: Execution
    left_out: Sequence[Chain]


def start(vendor_type: str, chains: Sequence[Chain], **attributes: Any) -> Started:
    """Record an execution whose tasks are these jobs. `attributes` are those of NewExecution.

    1. Leave out chains with a unique job that is queued or running. A key is held by its job until its task
       is final; nothing has to free it, so no crash can leave it taken.
    2. Write execution, tasks and jobs in one transaction.
    3. After the commit, ask for the messages. Without any job there is nothing to wait for: it has succeeded.

    What if the process dies before the commit: nothing happened. After it: whoever repairs publishes what was
    recorded and has no message (publishing.py).
    """
    chains = [list(one) for one in chains if one]
    _refuse_what_cannot_be_sent(list(chain.from_iterable(chains)))
    for one in chains:
        keys = [job.key for job in one if job.key]
        if len(keys) > len(set(keys)):
            raise Refused("a chain has the same unique job twice: it would wait for itself")
    for left in reversed(range(TRIES)):
        try:
            with transaction.atomic():
                return _record(vendor_type, chains, attributes)
        except (IntegrityError, OperationalError) as exc:
            if not left or not ("job_unique" in str(exc) or "deadlock" in str(exc)):
                raise
    raise AssertionError("the last try returns or raises")


def _record(vendor_type: str, chains: Sequence[Chain], attributes: dict[str, Any]) -> Started:
    held = taken(job.key for one in chains for job in one)
    fresh: list[Chain] = []
    left_out: list[Chain] = []
    for one in chains:
        keys = {job.key for job in one} - {None}
        (left_out if keys & held else fresh).append(one)
        held |= keys
    if chains and not fresh:
        raise AlreadyUnderWay
    jobs = list(chain.from_iterable(fresh))
    tasks_of_jobs = [NewTask(job_id=job.job_id) for job in jobs]
    execution = create(NewExecution(vendor_type, **attributes, tasks=tasks_of_jobs))
    tasks = iter(execution.tasks.order_by("pk"))
    rows: list[Job] = []
    for one in fresh:
        before = None
        for job in one:
            row = Job(
                task=next(tasks),
                name=job.name,
                args=list(job.args),
                kwargs=job.kwargs,
                options=job.options,
                max_attempts=job.max_attempts,
                unique_key=job.key,
                follows=before,
                takes_result=job.takes_result and before is not None,
            )
            rows.append(row)
            before = row
    Job.objects.bulk_create(rows, batch_size=BATCH)
    if not rows:
        mark_done(execution.pk, "it had no jobs")
    transaction.on_commit(partial(signals.recorded.send, sender=start, execution_id=execution.pk))
    return Started(execution, left_out)


def _refuse_what_cannot_be_sent(jobs: Sequence[NewJob]) -> None:
    for job in jobs:
        if job.is_unique and job.takes_result:
            raise Refused(
                f"job {job.name}: is unique and takes what the one before it returns, which nobody knows yet"
            )
        if not isinstance(job.max_attempts, int) or not 1 <= job.max_attempts <= MAX_ATTEMPTS:
            takes = f"a whole number from 1 to {MAX_ATTEMPTS:,}"
            raise Refused(f"job {job.name}: max_attempts takes {takes}, and got {job.max_attempts!r}")
        try:
            json_text([list(job.args), job.kwargs, job.options])
        except (TypeError, ValueError) as exc:
            raise Refused(f"job {job.name}: takes arguments that are JSON, and got others: {exc}") from exc
