"""The tasks that no job of Harbor's job service will ever end, and ending them.

The job service keeps the stats of each job in a hash of its Redis: until the job ends, then for a day (Error: a
week). It starts no job without stats. So no report about a task will come if its job has no stats; if they say a
final status, the report was lost. Other jobs are left, however old: they may wait or run. Tasks without a job_id,
and those of a periodic policy that is there, are left as well.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, NamedTuple, cast

from django.db import connection, transaction
from redis import Redis
from redis.exceptions import RedisError

from harbor_refresh.executions.database import Statements, absence_translated
from harbor_refresh.executions.errors import QueueUnavailable, RightMissing
from harbor_refresh.executions.lifecycle.reports import Report, apply_reports
from harbor_refresh.executions.management.output import Failed, table
from harbor_refresh.executions.news.audit import Target, Word, at_terminal, note
from harbor_refresh.executions.status import FINAL, Status, is_final
from harbor_refresh.tasks.broker.redis_address import BadAddress
from harbor_refresh.tasks.queue.connection import connect

run = Statements(__package__)

#: The environment variable by which Harbor's job service itself may be given its Redis.
VARIABLE = "JOB_SERVICE_POOL_REDIS_URL"
PREFIX = "{harbor_job_service_namespace}:"
#: A task without stats is taken after this time without change. The job service itself gives up a job only after a
#: day, and the outcome is unknown, so nothing is gained by haste.
GONE_AFTER = timedelta(hours=24)
#: A task whose job has ended is taken after this time, counted from the end and from the last change of the task.
#: The job service resends a report each hour until the core takes it. The stats of a Success expire after a day.
#: Then the task would become an Error, so this must be far below a day.
LOST_AFTER = timedelta(hours=1)
#: So many tasks are read by one statement, and at most so many are locked and written by one transaction.
PAGE = 1_000
EXAMPLES = 20
#: The columns that a report writes.
WRITTEN = "status, status_code, status_revision, status_message, run_count, start_time, update_time, end_time"
#: A worker pool of the job service writes its heartbeat every 5 s. After this time it counts as dead.
HEARTBEAT_SECONDS = 60
GONE = "The job service no longer knows this job, so its outcome is unknown: it may have succeeded."


class TaskRow(NamedTuple):
    """A row of next_tasks.sql."""

    task_id: int
    execution_id: int
    vendor_type: str
    job_id: str
    status: str
    revision: int
    unchanged: timedelta


@dataclass(frozen=True)
class DeadTask:
    """A task that never ends by itself. `status` is the one that it should have, `revision` its run."""

    task_id: int
    execution_id: int
    vendor_type: str
    job_id: str
    stored: str
    status: str
    revision: int
    reason: str


@dataclass
class DeadTasks:
    """What a look has found. `looked_at`: tasks that were read. `unfinished`: those with a job that have not ended
    and have not changed for LOST_AFTER. `ended`: dead ones that were ended; another process changed the rest."""

    looked_at: int = 0
    unfinished: int = 0
    dead: int = 0
    ended: int = 0
    examples: list[DeadTask] = field(default_factory=list)


def as_text(found: DeadTasks) -> list[Any]:
    rows = [
        (str(one.task_id), str(one.execution_id), one.vendor_type, one.stored, one.status, one.reason)
        for one in found.examples
    ]
    shown: list[Any] = [
        f"Looked at {found.looked_at:,} tasks: {found.unfinished:,} with a job have not ended, "
        "and have not changed for an hour.",
    ]
    if rows:
        shown.append(table(("task", "execution", "vendor", "stored", "true", "why"), rows))
    if found.dead > len(rows):
        shown.append(f"… and {found.dead - len(rows):,} more.")
    return shown


def end(url: str, progress: Callable[[int], None], *, dry_run: bool = False) -> DeadTasks:
    """Look at every task and end the dead ones, page by page. A page, its log entries and nothing else is one
    transaction. The rule for reports decides again under the lock of each row, so a task that Harbor has changed
    meanwhile is left alone. A dry run writes nothing."""
    found, after = DeadTasks(), 0
    with _job_service(url) as client:
        periodic = _periodic(client)
        while rows := [TaskRow(*row) for row in run("next_tasks", after=after, page=PAGE)]:
            waiting = [
                one for one in rows if one.job_id and not is_final(one.status) and one.unchanged >= LOST_AFTER
            ]
            page = [one for one in _dead(client, waiting) if one.job_id not in periodic]
            found.looked_at += len(rows)
            found.unfinished += len(waiting)
            found.dead += len(page)
            found.examples += page[: EXAMPLES - len(found.examples)]
            if page and not dry_run:
                found.ended += _end(page)
            progress(found.looked_at)
            after = rows[-1].task_id
    return found


def _end(page: list[DeadTask]) -> int:
    try:
        with absence_translated(), transaction.atomic():
            outcome = apply_reports([Report(one.task_id, one.status, one.revision, one.reason) for one in page])
            for position in outcome.applied_at:
                one = page[position]
                detail = f"{one.stored} became {one.status}; job {one.job_id}: {one.reason}"
                note(at_terminal(), Word.FINISH, Target.TASK, one.task_id, detail=detail)
    except RightMissing as exc:
        if "table task" not in str(exc):
            raise
        connection.ensure_connection()  # the error has closed it
        role = connection.ops.quote_name(connection.connection.info.user)
        raise Failed(
            f"the role {role} lacks a right on Harbor's tasks, so as their owner type "
            f"GRANT UPDATE ({WRITTEN}) ON public.task TO {role}; and then repeat this command."
        ) from exc
    return outcome.applied


def _dead(client: Redis, rows: list[TaskRow]) -> Iterator[DeadTask]:
    """Ask for the stats of all jobs of a page at once."""
    if not rows:
        return
    with client.pipeline(transaction=False) as pipe:
        pipe.time()
        for one in rows:
            pipe.hmget(f"{PREFIX}job_stats:{one.job_id}", ["id", "status", "revision", "update_time"])
        (now, _), *answers = pipe.execute()
    for one, (known, status, of_job, changed) in zip(rows, answers, strict=True):
        word, last = (status or b"").decode(errors="replace"), int(of_job or 0)
        if known is None and status is None:
            if one.unchanged >= GONE_AFTER:
                yield DeadTask(*one[:5], Status.ERROR, one.revision, GONE)
        elif word in FINAL and last >= one.revision and now - int(changed or 0) >= LOST_AFTER.total_seconds():
            yield DeadTask(*one[:5], word, last, f"The job service says {word}; its report was lost.")


def _periodic(client: Redis) -> set[str]:
    """The jobs of periodic policies: the job service makes a new job for each run, so they need no stats."""
    policies = cast("list[bytes]", client.zrange(f"{PREFIX}period:policies", 0, -1))
    return {str(json.loads(one).get("id")) for one in policies}


@contextmanager
def _job_service(url: str) -> Iterator[Redis]:
    """Yield a client that is only read from. Refuse a Redis in which no job service is alive: in an empty one, a
    copy or another database every job would look gone."""
    try:
        with connect(url, 10, tries=1) as client:
            now = cast("tuple[int, int]", client.time())[0]
            pools = cast("set[bytes]", client.smembers(f"{PREFIX}worker_pools"))
            beats = [client.hget(f"{PREFIX}worker_pools:{pool.decode()}", "heartbeat_at") for pool in pools]
            if not any(now - int(cast("bytes", beat)) < HEARTBEAT_SECONDS for beat in beats if beat):
                raise Failed(
                    "no job service of Harbor is alive in this Redis, so every job would look gone. Name the "
                    f"job service's database in {VARIABLE} (number 2 unless Harbor's settings differ), and "
                    "let the job service run."
                )
            yield client
    except (RedisError, QueueUnavailable, BadAddress) as exc:
        raise Failed(f"the Redis of Harbor's job service cannot be asked ({VARIABLE}): {exc}") from exc
