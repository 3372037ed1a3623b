"""What the checks look at. Each fact is read once, and only if a check asks for it. Reading changes nothing."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import Any, NamedTuple

from celery import current_app
from django.apps import apps
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from redis import Redis

from harbor_refresh.executions.database import Statements, absence_translated
from harbor_refresh.tasks.conf import Refresh, refresh_settings
from harbor_refresh.tasks.overview import of_broker
from harbor_refresh.tasks.overview.findings import Finding, findings
from harbor_refresh.tasks.overview.state import look
from harbor_refresh.tasks.queue import execution_queue
from harbor_refresh.tasks.queue.connection import connect, redis_errors_translated
from harbor_refresh.tasks.queue.replies import Stats
from harbor_refresh.tasks.redis_address import Address, read_address

run = Statements(__package__)

#: How long a worker has to answer a question of Celery's remote control.
REPLY_SECONDS = 1.5
#: How long one answer of Redis may take for a check. A server that needs longer counts as away.
REDIS_SECONDS = 2.0


class Need(StrEnum):
    """A server that must answer before a check can look at it."""

    DATABASE = "PostgreSQL"
    REDIS = "Redis"
    BROKER = "the broker"


class DatabaseState(NamedTuple):
    """What database_state.sql returns. The timeouts are in milliseconds; 0 is none."""

    version: int
    version_text: str
    is_standby: bool
    is_read_only: bool
    lock_timeout: int
    idle_timeout: int
    tracks_activities: bool
    vacuums: bool
    fsync: bool
    full_page_writes: bool
    sessions: int
    room: int
    role: str
    database: str
    pid: int


class TableState(NamedTuple):
    """What table_state.sql returns of one table."""

    name: str
    vacuum_is_off: bool
    live: int
    dead: int
    vacuum_begins_at: float
    changed_since_analyzed: int
    analyze_begins_at: float
    xid_age: int
    freeze_at: int


class LongTransaction(NamedTuple):
    pid: int | None
    name: str
    seconds: float


@dataclass(frozen=True)
class Row:
    """A row of beat's schedule."""

    name: str
    task: str
    seconds: float | None
    start_time: datetime | None
    one_off: bool


class RedisServer:
    """One Redis: the queue's, or the broker's if that is another."""

    def __init__(self, need: Need, variable: str, address: Address) -> None:
        self.need = need
        self.variable = variable
        self.address = address
        self.client: Redis = connect(address, REDIS_SECONDS, tries=1)

    @contextmanager
    def asked(self) -> Iterator[Redis]:
        with redis_errors_translated():
            yield self.client

    @cached_property
    def info(self) -> dict[str, Any]:
        with self.asked() as client:
            return dict(client.info("everything"))

    @cached_property
    def saves(self) -> bool | None:
        """Whether it writes snapshots; None if the server does not tell, as managed servers do."""
        try:
            with self.asked() as client:
                return bool(client.config_get("save").get("save"))
        except Exception:  # CONFIG is forbidden or renamed
            return None


class Workers:
    """The answers of Celery's remote control, by the names of the workers."""

    def __init__(self) -> None:
        self._inspect = current_app.control.inspect(timeout=REPLY_SECONDS)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._inspect.ping() or {}))

    @cached_property
    def queues(self) -> dict[str, set[str]]:
        return {name: {one["name"] for one in found} for name, found in self._ask("active_queues").items()}

    @cached_property
    def task_names(self) -> dict[str, set[str]]:
        return {name: {one.split()[0] for one in found} for name, found in self._ask("registered").items()}

    @cached_property
    def settings(self) -> dict[str, dict[str, Any]]:
        return self._ask("conf")

    def _ask(self, question: str) -> dict[str, Any]:
        """Ask all workers that answered the ping; return as soon as each has answered."""
        if not self.names:
            return {}
        inspect = current_app.control.inspect(timeout=REPLY_SECONDS, limit=len(self.names))
        return dict(getattr(inspect, question)() or {})


class Facts:
    """`clock` is this machine's clock; a test passes a wrong one. `broker` is None if it is RabbitMQ."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.clock = clock
        self.conf: Refresh = refresh_settings()
        self.workers = Workers()
        self.redis = RedisServer(Need.REDIS, "REDIS_URL", read_address(self.conf.redis_url))
        self.broker: RedisServer | None = self.redis
        if of_broker.is_rabbitmq():
            self.broker = None
        elif not of_broker.is_the_same_server():
            self.broker = RedisServer(Need.BROKER, "CELERY_BROKER_URL", of_broker.address())

    @property
    def redis_servers(self) -> tuple[RedisServer, ...]:
        other = self.broker
        return (self.redis,) if other is None or other is self.redis else (self.redis, other)

    @cached_property
    def database(self) -> DatabaseState:
        return DatabaseState(*run("database_state")[0])

    @property
    def is_pooled(self) -> bool:
        """Whether a pooler stands before PostgreSQL: the process id that it gives a client is not that of the
        session."""
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            (pid,) = cursor.fetchone()
        told = connection.connection.info.backend_pid
        return bool(told != pid)

    @cached_property
    def unapplied(self) -> tuple[str, ...]:
        """The migrations that this program has and the database has not."""
        executor = MigrationExecutor(connection)
        plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
        return tuple(f"{migration.app_label}.{migration.name}" for migration, _ in plan)

    @cached_property
    def tables(self) -> tuple[TableState, ...]:
        return tuple(TableState(*row) for row in run("table_state"))

    @cached_property
    def stats(self) -> Stats:
        return execution_queue().stats()

    @cached_property
    def findings(self) -> list[Finding]:
        """What the overview finds wrong."""
        return findings(look())

    @cached_property
    def rows(self) -> dict[str, Row]:
        if not apps.is_installed("django_celery_beat"):
            return {}
        from django_celery_beat.models import PeriodicTask

        found = PeriodicTask.objects.select_related("interval", "crontab", "solar", "clocked")
        return {one.name: _row(one) for one in found}


def _row(one: Any) -> Row:
    return Row(
        name=one.name,
        task=one.task,
        seconds=one.interval.schedule.run_every.total_seconds() if one.interval else None,
        start_time=one.start_time,
        one_off=one.one_off,
    )


def database_answers() -> None:
    """Raise DatabaseAway, or one of the errors below it, if the database does not serve this program."""
    with absence_translated(), connection.cursor() as cursor:
        cursor.execute("SELECT 1")
