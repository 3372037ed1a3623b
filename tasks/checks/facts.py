"""What the checks look at. Each fact is read once, and only if a check asks for it. Reading changes nothing."""

from functools import cached_property
from typing import Any, NamedTuple

from celery import current_app
from django.db import connection, transaction
from django.db.migrations.executor import MigrationExecutor

from harbor_refresh.executions.conf.declarations import is_service
from harbor_refresh.executions.database import Statements, absence_translated
from harbor_refresh.executions.errors import DatabaseDown, QueueUnavailable, RefreshError
from harbor_refresh.tasks.broker import channels
from harbor_refresh.tasks.checks.registry import Server
from harbor_refresh.tasks.conf import Refresh, refresh_settings
from harbor_refresh.tasks.news.state import ServiceState, look
from harbor_refresh.tasks.queue.connection import connect

run = Statements(__package__)

#: How long a worker has to answer a question of Celery's remote control.
REPLY_SECONDS = 1.5
#: How long one answer of Redis may take for a check. A server that needs longer counts as down.
REDIS_SECONDS = 2.0


class RedisServer:
    """The Redis of the queue."""

    def __init__(self, url: str) -> None:
        self.client: Any = connect(url, REDIS_SECONDS, tries=1)

    @cached_property
    def info(self) -> dict[str, Any]:
        return dict(self.client.info("everything"))

    @cached_property
    def saves(self) -> bool | None:
        """Whether it writes snapshots; None if the server does not tell, as managed servers do."""
        try:
            return bool(self.client.config_get("save").get("save"))
        except Exception:  # CONFIG is forbidden or renamed
            return None


class Workers:
    """The answers of Celery's remote control, by worker. One that is busy in the pool `solo` does not answer."""

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted(current_app.control.inspect(timeout=REPLY_SECONDS).ping() or {}))

    @cached_property
    def queues(self) -> dict[str, set[str]]:
        return {name: {one["name"] for one in found} for name, found in self._ask("active_queues").items()}

    @cached_property
    def taken(self) -> set[str]:
        return set().union(*self.queues.values())

    @cached_property
    def task_names(self) -> dict[str, set[str]]:
        return {name: {one.split()[0] for one in found} for name, found in self._ask("registered").items()}

    def _ask(self, question: str) -> dict[str, Any]:
        if not self.names:
            return {}
        inspect = current_app.control.inspect(timeout=REPLY_SECONDS, limit=len(self.names))
        return dict(getattr(inspect, question)() or {})


#: The apps whose tables this program needs. A project migrates its own when it likes.
MIGRATED = frozenset({"harbor_executions", "harbor_tasks", "django_celery_beat"})


class DatabaseState(NamedTuple):
    """The row of database_state.sql. The timeouts are in milliseconds; 0 is none."""

    is_standby: bool
    is_read_only: bool
    isolation: str
    lock_timeout: int
    idle_timeout: int
    role: str
    database: str
    may_report: bool


class Facts:
    """`glance`: the state that a page shows already. The checks of the dashboard then ask no server."""

    def __init__(self, glance: ServiceState | None = None) -> None:
        self.glance = glance
        self.workers = Workers()

    @cached_property
    def conf(self) -> Refresh:
        return refresh_settings()

    @cached_property
    def state(self) -> ServiceState:
        return self.glance or look()

    @cached_property
    def redis(self) -> RedisServer:
        return RedisServer(self.conf.redis_url)

    def absence(self, server: Server) -> RefreshError | None:
        if self.glance:
            reason = self.glance.absent.get(server.name.lower())
            is_down = self.glance.is_migrated or server != Server.DATABASE
            return RefreshError(reason) if reason and is_down else None
        try:
            if server == Server.DATABASE:
                with absence_translated(), connection.cursor() as cursor:
                    cursor.execute("SELECT 1")
            elif server == Server.REDIS:
                self.redis.client.ping()
            else:
                with channels.glance(REDIS_SECONDS) as channel:
                    if channels.is_rabbitmq():
                        channels.try_rights(channel)
        except (DatabaseDown, QueueUnavailable) as exc:
            return exc
        return None

    @cached_property
    def database(self) -> DatabaseState:
        with transaction.atomic():  # Django sets the isolation of its transactions alone
            return DatabaseState(*run("database_state")[0])

    @cached_property
    def unapplied(self) -> tuple[str, ...]:
        """The migrations that this program has and the database has not, or why a glance knows of some."""
        if self.glance:
            return () if self.glance.is_migrated else (self.glance.absent["database"],)
        executor = MigrationExecutor(connection)
        ours = [node for node in executor.loader.graph.leaf_nodes() if node[0] in MIGRATED]
        plan = executor.migration_plan(ours)
        return tuple(f"{migration.app_label}.{migration.name}" for migration, _ in plan)


#: Where a project says what this variable of the service says.
PLACES = {
    "DATABASE_URL": "DATABASES in the settings",
    "REDIS_URL": "REDIS_URL in HARBOR_REFRESH (without it, the broker of the Celery app)",
    "CELERY_BROKER_URL": "the broker of the Celery app",
}


def place_of(variable: str) -> str:
    return variable if is_service() else PLACES[variable]


def celery_command(program: str) -> str:
    return f"celery -A {'harbor_refresh' if is_service() else 'YOUR_PROJECT'} {program}"
