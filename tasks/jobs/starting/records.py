"""Creation of jobs: record an execution and its jobs, all or nothing, and send the first of them after the
commit."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain, islice
from typing import Any, TypeVar
from uuid import uuid4

from celery import current_app
from django.db import transaction

from harbor_refresh.executions import crash_points
from harbor_refresh.executions.errors import AlreadyUnderWay, Refused
from harbor_refresh.executions.lifecycle import links
from harbor_refresh.executions.lifecycle.creation import (
    BATCH,
    NewExecution,
    NewTask,
    add_to_held,
    create,
    hold_open,
)
from harbor_refresh.executions.lifecycle.stops import finish
from harbor_refresh.executions.models import Execution
from harbor_refresh.executions.models.structure import Added
from harbor_refresh.executions.status import Status
from harbor_refresh.executions.text import MAX_JSON, is_text, is_whole, json_text, said_by, shown
from harbor_refresh.tasks.jobs import limits, sender, terms
from harbor_refresh.tasks.jobs.database import run
from harbor_refresh.tasks.jobs.outcomes import report_scheduled
from harbor_refresh.tasks.jobs.report_target import first_revision
from harbor_refresh.tasks.jobs.starting.celery_json import PLAIN, as_json
from harbor_refresh.tasks.jobs.starting.fairness import MOST_LINES, Turns, shared
from harbor_refresh.tasks.jobs.starting.options import moment_of
from harbor_refresh.tasks.jobs.starting.unique_keys import TRIES, key_of, lock_and_release, retry_on_conflict
from harbor_refresh.tasks.models.job import Job, Need, Takes
from harbor_refresh.tasks.queue.sets import sized_pages
from harbor_refresh.tasks.without_redis.agenda import at_once

MAX_ATTEMPTS = 32_767
#: What a task may say of its messages.
ON_THE_TASK = ("queue", "routing_key", "priority", "expires")
#: The options of a job that runs later. The row has its time.
LATER = ("countdown", "eta")
#: What a message can carry of a route, which has queues as objects.
PLAIN_OPTION = str | int | float | datetime
MAX_NAME = Job._meta.get_field("name").max_length or 0
#: Characters of JSON in one statement: the database's driver holds some five copies of it.
BATCH_SIZE = 4_000_000

NO_TERMS = terms.NewTerms()

Result = TypeVar("Result")


@dataclass(frozen=True)
class NewNeed:
    """A job needs the one at this place of its part, which comes before it."""

    place: int
    even_if_failed: bool = False


@dataclass(frozen=True)
class NewJob:
    """A job to be recorded. `takes` is what comes before its own arguments, of the jobs that it `needs`. `meta`
    becomes the attributes of its task. `limit_key`: its key in the limit of its task (jobs/limits.py)."""

    name: str
    args: Sequence[Any] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    max_attempts: int = 5
    is_unique: bool = False
    needs: Sequence[NewNeed] = ()
    takes: Takes = Takes.NOTHING
    meta: dict[str, Any] = field(default_factory=dict)
    limit_key: str | None = None
    job_id: str = field(default_factory=lambda: str(uuid4()))

    @property
    def key(self) -> str | None:
        return key_of(self.name, self.args, self.kwargs) if self.is_unique else None


#: Jobs that belong together, such as those of a chain: each comes after those that it needs.
Part = Sequence[NewJob]


def start(vendor_type: str, parts: Iterable[Part], turns: Turns | None = None, **attributes: Any) -> Execution:
    """Start an execution, as `start_or_find` does, and return it."""
    return start_or_find(vendor_type, parts, turns, **attributes)[0]


@at_once
def start_or_find(
    vendor_type: str,
    parts: Iterable[Part],
    turns: Turns | None = None,
    *,
    of_it: terms.NewTerms = NO_TERMS,
    **attributes: Any,
) -> tuple[Execution, bool]:
    """Record an execution whose tasks are these jobs. `attributes` are those of NewExecution, `of_it` its terms.
    If its parent has a child with its key already, or there is an execution with its key, return that one and
    False.

    1. Leave out parts with a unique job that is queued or running. A job holds its key until its task is final;
       no code has to release the key, so no crash can leave it taken.
    2. Write execution, tasks and jobs in one transaction.
    3. After the commit, send the first of them. An execution without jobs has succeeded at once, unless it is
       open.

    If the process dies before the commit, then nothing happened. After it, the sender sends what waits.
    """
    return _in_pages(parts, partial(_record, vendor_type, attributes, of_it, turns or Turns()))


@at_once
def add(execution_id: int, parts: Iterable[Part], *, once: str = "", turns: Turns | None = None) -> int:
    """Add these jobs to an execution that has not ended; return how many were added. `once`: the key of this
    addition. If it was made before, nothing is added.

    1. Hold the execution, so that it does not end before the commit (executions.creation.hold_open). Raises
       AlreadyFinal, or ExecutionClosed, if it has ended or is closed.
    2. Leave out parts with a unique job that is queued or running, as `start` does.
    3. Write tasks, jobs and the key in the same transaction. After the commit, publish these jobs.

    If the process dies before the commit, then nothing happened. After it, the sender sends the jobs, and the
    same addition with its key adds nothing.
    """
    return _in_pages(parts, partial(_add, execution_id, once, turns or Turns()))


#: Parts, and the size of each of their jobs by its id.
Sized = tuple[Sequence[Part], dict[str, int]]


def _in_pages(parts: Iterable[Part], write: Callable[[Iterator[Sized]], Result]) -> Result:
    """Have the parts written in one transaction, a page of them in memory at a time. A single page is written
    again if another transaction has taken one of its keys meanwhile; of more, the first are gone by then."""
    pages = _pages(parts)
    first = list(islice(pages, 2))
    tries = TRIES if len(first) < 2 else 1
    return retry_on_conflict(lambda: write(chain(first, pages)), tries)


def _pages(parts: Iterable[Part]) -> Iterator[Sized]:
    page: list[Part] = []
    count = 0
    for one in parts:
        page.append(one)
        count += len(one)
        if count >= BATCH:
            yield _checked(page)
            page, count = [], 0
    if page:
        yield _checked(page)


def _checked(parts: Sequence[Part]) -> Sized:
    parts = [[_as_stored(job) for job in one] for one in parts if one]
    sizes = {job.job_id: _size_of(job) for job in chain.from_iterable(parts)}
    for one in parts:
        keys = [job.key for job in one if job.key]
        if len(keys) > len(set(keys)):
            raise Refused("a chain, or jobs that need each other, have the same unique job twice")
    return parts, sizes


def _record(
    vendor_type: str, attributes: dict[str, Any], of_it: terms.NewTerms, turns: Turns, pages: Iterator[Sized]
) -> tuple[Execution, bool]:
    if child := _known_child(attributes.get("parent"), attributes.get("key_in_parent", "")):
        return child, False
    if known := terms.started(of_it.once, vendor_type):
        return known, False
    new = NewExecution(vendor_type, **attributes)
    execution, is_new = terms.create_with(of_it, partial(create, new))
    if not is_new:
        return execution, False
    if new.open_seconds is not None and turns.tenant is None:
        turns = replace(turns, tenant=shared(execution.pk))
    count, left_out = _write_pages(execution, pages, turns)
    if left_out and not count:
        raise AlreadyUnderWay
    if not count and new.open_seconds is None:
        finish(execution.pk, Status.SUCCESS, "it had no jobs")
    return execution, True


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


def _add(execution_id: int, once: str, turns: Turns, pages: Iterator[Sized]) -> int:
    execution = hold_open(execution_id, once=once)
    if not execution:
        return 0
    count, _ = _write_pages(execution, pages, replace(turns, tenant=shared(execution.pk)))
    if count:
        transaction.on_commit(partial(crash_points.reach, "added", [execution_id]))
    return count


def _write_pages(execution: Execution, pages: Iterator[Sized], turns: Turns) -> tuple[int, int]:
    """Write the jobs, and send the first of them after the commit. Returns how many, and how many parts were left
    out."""
    count = left_out = 0
    queues: set[str] = set()
    limited: dict[tuple[str, str], int] = {}
    for parts, sizes in pages:
        fresh = _without_held(parts)
        left_out += len(parts) - len(fresh)
        if fresh:
            revision = first_revision()
            tasks = [NewTask(job.job_id, job.meta, revision) for job in chain.from_iterable(fresh)]
            ids = add_to_held(execution, tasks)
            rows = _write(fresh, ids, revision, sizes, turns)
            queues |= {row["queue"] for row in rows}
            if len(limited) < MOST_LINES:  # workers admit those of any others within a second
                its = [row for row in rows if row["limit_key"] is not None]
                limited |= {(row["name"], row["limit_key"]): row["task_id"] for row in its}
            count += len(ids)
    if count:
        transaction.on_commit(partial(sender.send_started, queues, [execution.pk], [*limited.values()]))
    return count, left_out


def _without_held(parts: Sequence[Part]) -> list[Part]:
    """Leave out the parts with a unique job whose key is held."""
    _, held = lock_and_release(job.key for one in parts for job in one)
    fresh: list[Part] = []
    for one in parts:
        keys = {job.key for job in one} - {None}
        if not keys & held:
            fresh.append(one)
        held |= keys
    return fresh


def _write(
    parts: Sequence[Part], task_ids: Iterable[int], revision: int, sizes: dict[str, int], turns: Turns
) -> list[dict[str, Any]]:
    """Write the jobs of these tasks, which are in the order of the parts. Returns their rows."""
    left = iter(task_ids)
    rows: list[tuple[dict[str, Any], int]] = []
    needs: list[Need] = []
    for part in parts:
        ids = list(islice(left, len(part)))
        for task_id, job in zip(ids, part, strict=True):
            to = destination(job.name, job.options, job.args, job.kwargs)
            options = options_of(to.options, has_turn=not job.needs)
            row = {
                "task_id": task_id,
                "name": job.name,
                "args": job.args,
                "kwargs": job.kwargs,
                "options": options,
                "queue": to.queue,
                "priority": options.get("priority") or 0,
                "max_attempts": job.max_attempts,
                "unique_key": job.key,
                "takes": job.takes,
                "waits_for": len(job.needs),
                "revision": revision,
                "not_before": _time_of(job.options, has_turn=not job.needs),
                "limit_key": job.limit_key,
            }
            rows.append((row, sizes[job.job_id]))
            needs += (
                Need(job_id=task_id, needed_id=ids[one.place], place=place, even_if_failed=one.even_if_failed)
                for place, one in enumerate(job.needs)
            )
    turns.give([row for row, _ in rows])
    limits.write_missing({row["name"] for row, _ in rows if row["limit_key"] is not None})
    for page in sized_pages(rows, BATCH_SIZE, count=BATCH):
        run("create_jobs", jobs=json.dumps(page))
    Need.objects.bulk_create(needs, batch_size=BATCH)
    report_scheduled([row["task_id"] for row, _ in rows if row["not_before"] and not row["waits_for"]], revision)
    return [row for row, _ in rows]


@dataclass(frozen=True)
class Destination:
    """Where Celery sends a job: the queue, and what the route says beside it."""

    queue: str
    options: dict[str, Any]


def destination(
    name: str, options: Mapping[str, Any], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
) -> Destination:
    """Ask Celery's routes, once: a message goes where its row says. What the task says of itself counts as in
    Celery, below what is given."""
    task = current_app.tasks.get(name)
    of_task = {one: value for one in ON_THE_TASK if (value := getattr(task, one, None)) is not None}
    given = {**of_task, **options}
    try:
        route = dict(current_app.amqp.router.route(given, name, tuple(args), dict(kwargs or {})))
    except Exception as exc:
        raise Refused(f"job {name}: Celery finds no route: {said_by(exc)}") from exc
    queue = route.get("queue") or current_app.conf.task_default_queue
    kept = {one: route[one] for one in (*ON_THE_TASK, "exchange") if isinstance(route.get(one), PLAIN_OPTION)}
    return Destination(str(getattr(queue, "name", queue)), {**kept, **options})


def options_of(given: Mapping[str, Any], *, has_turn: bool) -> dict[str, Any]:
    """Return the options of a job's message. Its time is in the row, and it expires at a moment, because it may
    wait here before it is sent. A job that needs others keeps its seconds, because they begin with its turn.
    The moment of an `eta` stays for people to read; the sender leaves it out."""
    options = {name: value for name, value in given.items() if name != "countdown"}
    expires = options.get("expires")
    if isinstance(expires, str | datetime):
        options["expires"] = moment_of(expires).isoformat()
    elif expires and has_turn:
        options["expires"] = (datetime.now(UTC) + timedelta(seconds=expires)).isoformat()
    if not has_turn and "countdown" in given:
        options["countdown"] = given["countdown"]
    return options


def _time_of(options: dict[str, Any], *, has_turn: bool) -> str | None:
    """Return the moment before which a job does not run. None if it has passed, or is not known yet: the countdown
    of a job that needs others begins with its turn (sql/schema/end_with_their_tasks.sql)."""
    now = datetime.now(UTC)
    seconds = options.get("countdown") or 0 if has_turn else 0
    moment = moment_of(options["eta"]) if options.get("eta") else now + timedelta(seconds=seconds)
    return moment.isoformat() if moment > now else None


OTHER_TYPES = "Give a dataclass as dataclasses.asdict(value), a row as its key, or register the type with kombu"


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
    if job.is_unique and job.takes != Takes.NOTHING:
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
