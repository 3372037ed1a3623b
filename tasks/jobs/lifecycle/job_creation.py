"""Creation of jobs: record an execution and its jobs, all or nothing, and publish them after the commit."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any
from uuid import uuid4

from django.db import transaction

from harbor_refresh.executions import crash_points
from harbor_refresh.executions.errors import AlreadyUnderWay, Refused
from harbor_refresh.executions.lifecycle import links
from harbor_refresh.executions.lifecycle.creation import (
    BATCH,
    MAX_JOB_ID,
    NewExecution,
    NewTask,
    add_to_held,
    create,
    hold_open,
)
from harbor_refresh.executions.lifecycle.manual_status import finish_as_success
from harbor_refresh.executions.models import Execution
from harbor_refresh.executions.models.structure import Added
from harbor_refresh.executions.text import MAX_JSON, is_text, is_whole, json_text, shown
from harbor_refresh.tasks.database import run
from harbor_refresh.tasks.jobs.celery_json import PLAIN, as_json
from harbor_refresh.tasks.jobs.lifecycle import publication
from harbor_refresh.tasks.jobs.lifecycle.unique_keys import key_of, lock_and_release, retry_on_conflict
from harbor_refresh.tasks.jobs.revisions import first_revision
from harbor_refresh.tasks.models.job import Job
from harbor_refresh.tasks.queue.sets import sized_pages
from harbor_refresh.tasks.without_redis.agenda import at_once

MAX_ATTEMPTS = 32_767
MAX_NAME = Job._meta.get_field("name").max_length or 0
#: Characters of JSON in one statement: the database's driver holds some five copies of it.
BATCH_SIZE = 4_000_000


@dataclass(frozen=True)
class NewJob:
    """A job to be recorded. `takes_result`: its first argument is the result of the job before it in its chain.
    `meta` becomes the attributes of its task."""

    name: str
    args: Sequence[Any] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    max_attempts: int = 5
    is_unique: bool = False
    takes_result: bool = False
    meta: dict[str, Any] = field(default_factory=dict)
    job_id: str = field(default_factory=lambda: str(uuid4()))

    @property
    def key(self) -> str | None:
        return key_of(self.name, self.args, self.kwargs) if self.is_unique else None


#: Jobs that run one after another. A single job is a chain of one.
Chain = Sequence[NewJob]


@dataclass(frozen=True)
class Started:
    """`left_out`: chains with a unique job that is queued or running already."""

    execution: Execution
    left_out: Sequence[Chain]


@at_once
def start(vendor_type: str, chains: Sequence[Chain], **attributes: Any) -> Started:
    """Record an execution whose tasks are these jobs. `attributes` are those of NewExecution. If its parent has a
    child with its key already, return that child.

    1. Leave out chains with a unique job that is queued or running. A job holds its key until its task is final;
       no code has to release the key, so no crash can leave it taken.
    2. Write execution, tasks and jobs in one transaction.
    3. After the commit, publish the jobs. An execution without jobs has succeeded at once, unless it is open.

    What if the process dies before the commit: nothing happened. After it: recovery publishes the recorded jobs
    that have no message (publication.py).
    """
    sized = _checked(chains)
    return retry_on_conflict(partial(_record, vendor_type, sized, attributes))


@at_once
def add(execution_id: int, chains: Sequence[Chain], *, once: str = "") -> int:
    """Add these jobs to an execution that has not ended; return how many were added. `once`: the key of this
    addition. If it was made before, nothing is added.

    1. Hold the execution, so that it does not end before the commit (executions.creation.hold_open). Raises
       AlreadyFinal, or ExecutionClosed, if it has ended or is closed.
    2. Leave out chains with a unique job that is queued or running, as `start` does.
    3. Write tasks, jobs and the key in the same transaction. After the commit, publish these jobs.

    What if the process dies before the commit: nothing happened. After it: recovery publishes the jobs, and the
    same addition with its key adds nothing.
    """
    sized = _checked(chains)
    return retry_on_conflict(partial(_add, execution_id, sized, once))


#: The chains, and the size of each of their jobs by its id.
Sized = tuple[Sequence[Chain], dict[str, int]]


def _checked(chains: Sequence[Chain]) -> Sized:
    chains = [[_as_stored(job) for job in one] for one in chains if one]
    sizes = {job.job_id: _size_of(job) for job in chain.from_iterable(chains)}
    for one in chains:
        keys = [job.key for job in one if job.key]
        if len(keys) > len(set(keys)):
            raise Refused("a chain has the same unique job twice: it would wait for itself")
    return chains, sizes


def _record(vendor_type: str, sized: Sized, attributes: dict[str, Any]) -> Started:
    chains, sizes = sized
    if child := _known_child(attributes.get("parent"), attributes.get("key_in_parent", "")):
        return Started(child, [])
    fresh, left_out = _without_held(chains)
    if chains and not fresh:
        raise AlreadyUnderWay
    new = NewExecution(vendor_type, **attributes, tasks=_tasks_of(fresh))
    execution = create(new)
    if fresh:
        ids = execution.tasks.exclude(job_id="").order_by("pk").values_list("pk", flat=True)
        _write(fresh, ids, sizes)
        transaction.on_commit(partial(publication.publish_after_commit, execution_id=execution.pk))
    elif new.open_seconds is None:
        finish_as_success(execution.pk, "it had no jobs")
    return Started(execution, left_out)


def _known_child(parent: int | None, key: str) -> Execution | None:
    """Hold the parent open, before anything else is locked. Return its child with this key, if it was started
    before."""
    if parent is None:
        return None
    if hold_open(parent, once=key, adds=Added.CHILD):
        return None
    child = links.child_of_key(parent, key)
    if child is None:
        raise Refused(f"the child {shown(key)} of execution {parent} was deleted")
    return child


def _add(execution_id: int, sized: Sized, once: str) -> int:
    chains, sizes = sized
    execution = hold_open(execution_id, once=once)
    if not execution:
        return 0
    fresh, _ = _without_held(chains)
    if not fresh:
        return 0
    ids = add_to_held(execution, _tasks_of(fresh))
    _write(fresh, ids, sizes)

    def reach() -> None:
        crash_points.reach("added", [execution_id])

    transaction.on_commit(reach)
    transaction.on_commit(partial(publication.publish_after_commit, execution_id=execution_id, only=ids))
    return len(ids)


def _without_held(chains: Sequence[Chain]) -> tuple[list[Chain], list[Chain]]:
    """Part the chains: those to be recorded, and those with a unique job whose key is held."""
    _, held = lock_and_release(job.key for one in chains for job in one)
    fresh: list[Chain] = []
    left_out: list[Chain] = []
    for one in chains:
        keys = {job.key for job in one} - {None}
        (left_out if keys & held else fresh).append(one)
        held |= keys
    return fresh, left_out


def _tasks_of(chains: Sequence[Chain]) -> list[NewTask]:
    revision = first_revision()
    return [NewTask(job.job_id, job.meta, revision) for one in chains for job in one]


def _write(chains: Sequence[Chain], task_ids: Iterable[int], sizes: dict[str, int]) -> None:
    """Write the jobs of these tasks, which are in the order of the chains."""
    ids = iter(task_ids)
    rows: list[tuple[dict[str, Any], int]] = []
    for one in chains:
        before = None
        for job in one:
            row = {
                "task_id": next(ids),
                "name": job.name,
                "args": job.args,
                "kwargs": job.kwargs,
                "options": job.options,
                "max_attempts": job.max_attempts,
                "unique_key": job.key,
                "follows": before,
                "takes_result": job.takes_result and before is not None,
            }
            rows.append((row, sizes[job.job_id]))
            before = row["task_id"]
    for page in sized_pages(rows, BATCH_SIZE, count=BATCH):
        run("create_jobs", jobs=json.dumps(page))


OTHER_TYPES = (
    "Give a dataclass as dataclasses.asdict(value), and a row as its key, or register the type with kombu "
    "(docs/jobs.md, Arguments)"
)


def _as_stored(job: NewJob) -> NewJob:
    """Return the job with its arguments as they are stored. Raises Refused, with the argument that cannot be."""
    takes = f"takes arguments that are JSON of at most {MAX_JSON:,} bytes"
    if not isinstance(job.args, list | tuple) or not isinstance(job.kwargs, dict):
        raise Refused(f"job {job.name}: {takes}, in a list and a dict")
    if names := [name for name in job.kwargs if not isinstance(name, str)]:
        raise Refused(f"job {job.name}: takes names as keywords, and got {shown(names[0])}")
    if all(type(value) in PLAIN for value in (*job.args, *job.kwargs.values())):
        return job
    stored: dict[str | int, Any] = {}
    given: list[tuple[str | int, Any]] = [*enumerate(job.args, 1), *job.kwargs.items()]
    for place, value in given:
        try:
            stored[place] = as_json(value)
        except (TypeError, ValueError) as exc:
            argument = shown(place) if isinstance(place, str) else place
            way_out = f". {OTHER_TYPES}" if isinstance(exc, TypeError) else ""
            raise Refused(f"job {job.name}: {takes}; argument {argument}: {exc}{way_out}") from exc
    args = [stored[place] for place, _ in enumerate(job.args, 1)]
    return replace(job, args=args, kwargs={name: stored[name] for name in job.kwargs})


def _size_of(job: NewJob) -> int:
    """Return the size of what is stored of the job, in characters. Raises Refused if it cannot be stored or
    sent."""
    if not is_text(job.name, MAX_NAME, at_least=1):
        raise Refused(f"a job takes a name of 1 to {MAX_NAME} characters, and got {shown(job.name)}")
    if not is_text(job.job_id, MAX_JOB_ID, at_least=1):
        takes = f"takes an id of 1 to {MAX_JOB_ID} characters"
        raise Refused(f"job {job.name}: {takes}, and got {shown(job.job_id)}")
    if job.is_unique and job.takes_result:
        raise Refused(
            f"job {job.name}: is unique and takes the result of the job before it, which is not known yet"
        )
    if not is_whole(job.max_attempts, 1, MAX_ATTEMPTS):
        takes = f"a whole number from 1 to {MAX_ATTEMPTS:,}"
        raise Refused(f"job {job.name}: max_attempts takes {takes}, and got {shown(job.max_attempts)}")
    try:
        return len(json_text([list(job.args), job.kwargs, job.options]))
    except (TypeError, ValueError) as exc:
        takes = f"takes arguments that are JSON of at most {MAX_JSON:,} bytes"
        raise Refused(f"job {job.name}: {takes}: {exc}") from exc
