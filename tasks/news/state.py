"""The state of the service at this moment, from Redis, the broker and PostgreSQL.

A look is cheap at any size: one script in Redis, one statement in PostgreSQL, the lengths of the queues of the
broker, and no count over executions or tasks. It waits for about a second if Redis hangs, and for two if
PostgreSQL does. What cannot be read is None, and `absent` says why.

Ages are in seconds, each by the clock of the server that knows the moment, so that no two clocks are compared.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db import DatabaseError, InterfaceError, connection, transaction
from django.db.models import Q
from django.db.models.functions import Now

from harbor_refresh.executions.database import MISSING, absence_translated, first_line, set_limit, sqlstate
from harbor_refresh.executions.errors import DatabaseDown, NotMigrated, RefreshError
from harbor_refresh.tasks.broker import channels
from harbor_refresh.tasks.broker.celery_queues import QUEUES
from harbor_refresh.tasks.conf import refresh_settings
from harbor_refresh.tasks.jobs.limits import MOST_COUNTED
from harbor_refresh.tasks.pipeline.schedule import ROWS, has_rows
from harbor_refresh.tasks.queue import brief_queue
from harbor_refresh.tasks.sql import run
from harbor_refresh.tasks.strategies import strategy

#: How long the statement may take.
PATIENCE = "2s"
#: A node that died before is not shown any more.
LATELY_SECONDS = 3_600
#: What PostgreSQL knows: the columns of look.sql, and beat's schedule.
OF_DATABASE = (
    *("quarantined", "dead_letters", "open_actions", "last_reconcile", "drifted", "jobs_in_progress"),
    *("last_sample", "paused", "waiting_webhooks", "schedule"),
)


@dataclass(frozen=True)
class SeenNode:
    name: str
    silent: float


@dataclass(frozen=True)
class Scheduled:
    """A row of beat's schedule. `sent`: how long ago beat sent it; None if it never did. `begins_in`: the time
    until its start, if it has one."""

    name: str
    task: str
    is_enabled: bool
    interval: float | None
    sent: float | None
    is_one_off: bool = False
    begins_in: float | None = None


@dataclass(frozen=True, kw_only=True)
class ServiceState:
    """What is known. Each value is None if its server is down; `absent` has the reason by server, one of `redis`,
    `broker` and `database`. The database counts as down, too, if it `is_migrated` no further than another release.

    `nodes` are alive. `dead` fell silent within the last hour without saying that they stop, the latest first; a
    silent node may also have lost its way to Redis. While no heartbeat comes at all, none is known to be dead, and
    `last_heartbeat` says for how long. They have come without a gap since the `first_heartbeat`.
    `oldest_waiting` is at least the age of the oldest execution on the queue. `last_tick`: how long ago a worker
    looked for work. `last_reconcile`: how long ago the last complete pass of reconcile began; it found `drifted`
    executions whose mark was lost. `last_sample`: how long ago a worker ran `tasks.sample`. `pause`: for how long
    no node claims yet, because the database was down. `paused`: the queues that an operator has paused.
    `waiting_webhooks`: nothing is sent to them for a while, because requests failed. `messages`: how many wait
    with the broker, by queue; only Redis and RabbitMQ are asked. `beat_silent`: how long ago beat sent anything;
    without rows, how long ago a worker did something that only beat sends.
    """

    absent: Mapping[str, str] = field(default_factory=dict)
    is_migrated: bool = True
    strategy: str = "claim"
    in_process: bool = False
    # from Redis
    backlog: int | None = None
    in_flight: int | None = None
    failed_before: int | None = None
    oldest_waiting: float | None = None
    pause: float | None = None
    nodes: tuple[SeenNode, ...] | None = None
    dead: tuple[SeenNode, ...] | None = None
    last_heartbeat: float | None = None
    first_heartbeat: float | None = None
    last_tick: float | None = None
    # from the broker
    messages: Mapping[str, int] | None = None
    # from PostgreSQL
    quarantined: int | None = None
    dead_letters: int | None = None
    open_actions: int | None = None
    last_reconcile: float | None = None
    drifted: int | None = None
    schedule: tuple[Scheduled, ...] | None = None
    paused: tuple[str, ...] | None = None
    waiting_webhooks: tuple[str, ...] | None = None
    jobs_in_progress: int | None = None
    last_sample: float | None = None

    @property
    def beat_silent(self) -> float | None:
        """How long ago beat sent anything; None if it never did, or if that is not known."""
        sent = [row.sent for row in self.schedule or ()] or [self.last_sample, self.last_reconcile]
        return min((one for one in sent if one is not None), default=None)


def look() -> ServiceState:
    """Look at all servers. Raises nothing if one of them is down."""
    conf = refresh_settings()
    absent: dict[str, str] = {}
    known: dict[str, Any] = {}
    for server, read in _PARTS.items():
        if server == "broker" and "redis" in absent and channels.is_the_same_server():
            absent[server] = absent["redis"]
            continue
        try:
            known |= read()
        except RefreshError as exc:
            absent[server] = str(exc)
            known["is_migrated"] = not isinstance(exc, NotMigrated)
    return ServiceState(absent=absent, strategy=conf.strategy, in_process=conf.in_process, **known)


def _redis() -> dict[str, Any]:
    """What Redis knows, by one script. Raises QueueUnavailable."""
    seen = brief_queue().stats()
    ago = seen.ago
    return {
        "backlog": seen.backlog if strategy().marks_on_queue else None,  # to count them is to read all of them
        "in_flight": seen.in_flight,
        "failed_before": seen.failed_before,
        "oldest_waiting": ago(seen.waiting_since) if seen.waiting_since else (None if seen.backlog else 0.0),
        "pause": seen.pause_ms / 1000,
        "nodes": tuple(SeenNode(name, ago(heard)) for name, heard in seen.signs),
        "dead": tuple(SeenNode(name, ago(heard)) for name, heard in seen.dead if ago(heard) <= LATELY_SECONDS),
        "last_heartbeat": ago(seen.heard) if seen.heard else None,
        "first_heartbeat": ago(seen.since) if seen.since else None,
        "last_tick": ago(seen.ticked) if seen.ticked else None,
    }


def _database() -> dict[str, Any]:
    """What PostgreSQL knows, by one statement, and one for beat's schedule. Raises DatabaseDown,
    too, if the database takes too long, and NotMigrated if a table or a column is missing."""
    try:
        with absence_translated(), transaction.atomic():
            # inside a transaction of the caller the limit would outlive the look
            if not connection.savepoint_ids:
                set_limit("statement_timeout", PATIENCE)
            [seen] = run("look", most=MOST_COUNTED)
            schedule = _schedule()
    except (DatabaseError, InterfaceError) as exc:
        kind = NotMigrated if sqlstate(exc) in MISSING else DatabaseDown
        raise kind(f"PostgreSQL: {first_line(exc)}") from exc
    *numbers, paused, webhooks = seen
    known = *numbers, tuple(json.loads(paused)), tuple(json.loads(webhooks)), schedule
    return dict(zip(OF_DATABASE, known, strict=True))


def _schedule() -> tuple[Scheduled, ...] | None:
    """The rows of beat's schedule; None in a project without django-celery-beat."""
    if not has_rows():
        return None
    from django_celery_beat.models import PeriodicTask

    ours = Q(task__in=[row.task for row in ROWS]) | Q(name__in=[row.name for row in ROWS])
    rows = PeriodicTask.objects.filter(ours).annotate(now=Now())
    return tuple(
        Scheduled(
            row.name,
            row.task,
            row.enabled,
            row.interval and row.interval.schedule.run_every.total_seconds(),
            row.last_run_at and (row.now - row.last_run_at).total_seconds(),
            row.one_off,
            row.start_time and (row.start_time - row.now).total_seconds(),
        )
        for row in rows.select_related("interval").order_by("name")
    )


_PARTS: Mapping[str, Callable[[], dict[str, Any]]] = {
    "redis": _redis,
    "broker": lambda: {"messages": channels.messages(QUEUES)} if channels.is_counted() else {},
    "database": _database,
}
