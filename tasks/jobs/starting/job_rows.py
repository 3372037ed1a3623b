"""The rows of jobs: record an execution with its jobs, or more jobs of one, all or nothing.

1. Leave out parts with a unique job that is queued or running. A job holds its key until its task is final; no
   code has to release the key, so no crash can leave it taken.
2. Write tasks and jobs in one transaction, with their execution, or with the key of an addition.
3. After the commit, send the first of them.

If the process dies before the commit, then nothing happened. After it, the sender sends what waits, and the same
start or addition with its key writes nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain, islice
from typing import Any, TypeVar

from celery import current_app
from django.db import transaction

from harbor_refresh.executions.database import sized_pages
from harbor_refresh.executions.errors import AlreadyUnderWay, Refused
from harbor_refresh.executions.lifecycle import crash_points, links
from harbor_refresh.executions.lifecycle.creation import (
    BATCH,
    NewExecution,
    NewTask,
    add_to_held,
    create,
    hold_open,
    json_pages,
)
from harbor_refresh.executions.lifecycle.stops import finish
from harbor_refresh.executions.models import Callback, Execution
from harbor_refresh.executions.models.structure import Added
from harbor_refresh.executions.news.callbacks import make_subscriptions
from harbor_refresh.executions.status import Status
from harbor_refresh.executions.text import said_by, shown
from harbor_refresh.tasks.jobs import limits, sender, terms
from harbor_refresh.tasks.jobs.outcomes import report_scheduled
from harbor_refresh.tasks.jobs.report_target import first_revision
from harbor_refresh.tasks.jobs.sql import run
from harbor_refresh.tasks.jobs.starting.declarations import NewJob, Part, stored
from harbor_refresh.tasks.jobs.starting.fairness import MOST_LINES, Turns, shared
from harbor_refresh.tasks.jobs.starting.options import moment_of, refuse_options
from harbor_refresh.tasks.jobs.starting.unique_keys import TRIES, lock_and_release, retry_on_conflict
from harbor_refresh.tasks.models.job import Need
from harbor_refresh.tasks.models.terms import Terms
from harbor_refresh.tasks.without_redis.agenda import at_once

#: What a task may say of its messages. A worker knows the time limits of its tasks.
ON_THE_TASK = ("queue", "routing_key", "exchange", "delivery_mode", "priority", "expires")
#: What a message can carry of a route, which has queues as objects.
PLAIN_OPTION = str | int | float | datetime

Result = TypeVar("Result")
Pages = Iterator[Sequence[Part]]


@at_once
def start_or_find(
    new: NewExecution, parts: Iterable[Part], turns: Turns | None = None, of_it: Terms | None = None
) -> tuple[Execution, bool]:
    """Record an execution whose tasks are these jobs, with the terms `of_it`. If its parent has a child with its
    key already, or there is an execution with its key, return that one and False. An execution without jobs has
    succeeded at once, unless it is open."""
    return _in_pages(parts, partial(_record, new, of_it, turns or Turns()), new.callbacks)


@at_once
def add(execution_id: int, parts: Iterable[Part], *, once: str = "", turns: Turns | None = None) -> int:
    """Add these jobs to an execution, which is held, so that it does not end before the commit; return how many
    were added. `once`: the key of this addition. If it was made before, nothing is added. Raises AlreadyFinal, or
    ExecutionClosed, if the execution has ended or is closed."""
    return _in_pages(parts, partial(_add, execution_id, once, turns or Turns()))


def _in_pages(
    parts: Iterable[Part], write: Callable[[Pages], Result], callbacks: Sequence[Callback] = ()
) -> Result:
    """Have the parts written in one transaction, a page of them in memory at a time. A single page is written
    again if another transaction has taken one of its keys meanwhile; of more, the first are gone by then."""
    pages = _pages(parts)
    first = list(islice(pages, 2))
    make_subscriptions(callbacks)
    return retry_on_conflict(lambda: write(chain(first, pages)), tries=TRIES if len(first) < 2 else 1)


def _pages(parts: Iterable[Part]) -> Pages:
    for page in sized_pages(((part, len(part)) for part in parts), BATCH):
        checked = [[stored(job) for job in part] for part in page if part]
        for part in checked:
            keys = [job.key for job in part if job.is_unique]
            if len(keys) > len(set(keys)):
                raise Refused("a chain, or jobs that need each other, have the same unique job twice")
        yield checked


def _record(new: NewExecution, of_it: Terms | None, turns: Turns, pages: Pages) -> tuple[Execution, bool]:
    if child := _known_child(new.parent, new.key_in_parent):
        return child, False
    execution, is_new = terms.create_with(of_it, new.vendor_type, partial(create, new))
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
    if parent is None or hold_open(parent, once=key, adds=Added.CHILD):
        return None
    child = links.child_of_key(parent, key)
    if child is None:
        raise Refused(f"the child {shown(key)} of execution {parent} was deleted")
    return child


def _add(execution_id: int, once: str, turns: Turns, pages: Pages) -> int:
    execution = hold_open(execution_id, once=once)
    if not execution:
        return 0
    count, _ = _write_pages(execution, pages, replace(turns, tenant=shared(execution.pk)))
    if count:
        transaction.on_commit(partial(crash_points.reach, "added", [execution_id]))
    return count


def _write_pages(execution: Execution, pages: Pages, turns: Turns) -> tuple[int, int]:
    """Write the jobs, and send the first of them after the commit. Returns how many, and how many parts were left
    out."""
    count = left_out = 0
    queues: set[str] = set()
    limited: dict[tuple[str, str], int] = {}
    for parts in pages:
        fresh = _without_held(parts)
        left_out += len(parts) - len(fresh)
        rows = _write(execution, fresh, turns) if fresh else []
        count += len(rows)
        queues |= {row["queue"] for row in rows}
        if len(limited) < MOST_LINES:  # workers admit those of any others within a second
            its = [row for row in rows if row["limit_key"] is not None]
            limited |= {(row["name"], row["limit_key"]): row["task_id"] for row in its}
    if count:
        transaction.on_commit(partial(sender.send_started, queues, [execution.pk], [*limited.values()]))
    return count, left_out


def _without_held(parts: Sequence[Part]) -> list[Part]:
    """Leave out the parts with a unique job whose key is held."""
    keys_of = [{job.key for job in one if job.is_unique} for one in parts]
    _, held = lock_and_release(chain.from_iterable(keys_of))
    fresh: list[Part] = []
    for one, keys in zip(parts, keys_of, strict=True):
        if not keys & held:
            fresh.append(one)
        held |= keys
    return fresh


def _write(execution: Execution, parts: Sequence[Part], turns: Turns) -> list[dict[str, Any]]:
    """Write the tasks and the jobs of these parts. Returns the rows of the jobs."""
    revision = first_revision()
    jobs = list(chain.from_iterable(parts))
    task_ids = add_to_held(execution, [NewTask(job.job_id, job.meta, revision) for job in jobs])
    rows = [_row_of(job, pk, revision, turns.tenant) for job, pk in zip(jobs, task_ids, strict=True)]
    turns.give(rows)
    limits.write_declared({row["name"] for row in rows if row["limit_key"] is not None})
    for page in json_pages(rows):
        run("create_jobs", jobs=page)
    left = iter(task_ids)
    needs: list[Need] = []
    for part in parts:
        ids = list(islice(left, len(part)))
        needs += (
            Need(job_id=task_id, needed_id=ids[one.place], place=place, even_if_failed=one.even_if_failed)
            for task_id, job in zip(ids, part, strict=True)
            for place, one in enumerate(job.needs)
        )
    Need.objects.bulk_create(needs, batch_size=BATCH)
    report_scheduled([row["task_id"] for row in rows if row["not_before"] and not row["waits_for"]], revision)
    return rows


def _row_of(job: NewJob, task_id: int, revision: int, tenant: str | None) -> dict[str, Any]:
    """Return the row of a new job. It expires at a moment, because it may wait here before it is sent; and the row
    has the time before which it does not run. If it needs others, its countdown begins with its turn
    (sql/schema/end_with_their_tasks.sql), and the seconds after which it expires begin when it is sent first
    (sending/pick.sql). The moment of an `eta` stays for people to read; the sender leaves it out."""
    queue, options = destination(job.name, job.options, job.args, job.kwargs)
    refuse_options(f"job {job.name}", options)  # a route of the project may have set some
    now = datetime.now(UTC)
    has_turn = not job.needs
    not_before = moment_of(options["eta"]) if options.get("eta") else now
    if has_turn and "countdown" in options:
        not_before = max(not_before, now + timedelta(seconds=options.pop("countdown")))
    expires = options.get("expires")
    if isinstance(expires, str | datetime):
        options["expires"] = moment_of(expires).isoformat()
    elif expires and has_turn:
        options["expires"] = (now + timedelta(seconds=expires)).isoformat()
    return {
        "task_id": task_id,
        "name": job.name,
        "args": job.args,
        "kwargs": job.kwargs,
        "options": options,
        "queue": queue,
        "priority": options.get("priority") or 0,
        "max_attempts": job.max_attempts,
        "unique_key": job.key,
        "takes": job.takes,
        "waits_for": len(job.needs),
        "revision": revision,
        "not_before": not_before.isoformat() if not_before > now else None,
        "limit_key": job.limit_key,
        "tenant": tenant,
    }


def destination(
    name: str, options: Mapping[str, Any], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
) -> tuple[str, dict[str, Any]]:
    """Ask Celery's routes, once: a message goes where its row says. Returns the queue, and the options with what
    the route says beside it. What the task says of itself counts as in Celery, below what is given."""
    task: Any = current_app.tasks.get(name)
    of_task = {one: value for one in ON_THE_TASK if (value := getattr(task, one, None)) is not None}
    given = {**of_task, **options}
    try:
        route = dict(current_app.amqp.router.route(given, name, tuple(args), dict(kwargs or {}), task))
    except Exception as exc:
        raise Refused(f"job {name}: Celery finds no route: {said_by(exc)}") from exc
    queue = route.get("queue") or current_app.conf.task_default_queue
    kept = {one: route[one] for one in ON_THE_TASK if isinstance(route.get(one), PLAIN_OPTION)}
    return str(getattr(queue, "name", queue)), {**kept, **options}
