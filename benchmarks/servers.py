"""The servers of a run, and the environment of the child processes that use them.

Servers named by DATABASE_URL and REDIS_URL are used, in a schema and a database of our own
(`existing_servers`). A server that is not named is started from its wheel in a temporary directory. Everything
is removed when the run ends, however it ends. This module imports no Django, because it runs before there are
settings.
"""

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from redis import Redis

from benchmarks.existing_servers import own_redis, own_schema
from benchmarks.machine import describe
from harbor_refresh.executions.conf.pacing import PRIVATE
from harbor_refresh.local.postgres import EmbeddedPostgres
from harbor_refresh.local.redis import EmbeddedRedis
from settings import env

ROOT = Path(__file__).resolve().parents[1]
REDIS_DB = 15

PARAMETERS = {
    "shared_buffers": "512MB",
    "max_wal_size": "4GB",
    "checkpoint_timeout": "15min",
    "shared_preload_libraries": "pg_stat_statements",
}
#: Redis with its defaults and no append-only file, because no design needs Redis to keep its data.
IN_MEMORY = ("--appendonly", "no")
#: Prefixes of variables that would change what is measured; they are removed from the caller's environment, and so
#: is LOG_LEVEL, because log lines are counted.
MEASURED = (
    "REFRESH_",
    PRIVATE,
    "CELERY_",
    "EXECUTION_",
    "CORE_INSTANCE_",
    "DATABASE_URL",
    "REDIS_URL",
    "_REDIS_URL",
)


class Servers:
    """A context manager. Its attributes are set on entry.

    | attribute | |
    | --- | --- |
    | `environ` | the whole environment of every child process |
    | `database_url`, `redis_url` | the servers |
    | `directory` | a temporary directory, for logs |
    | `pids` | process ids of the embedded servers, by kind |
    | `embedded` | the kinds of the embedded servers |
    """

    environ: dict[str, str]
    database_url: str
    redis_url: str
    directory: Path

    def __init__(self, *, redis_db: int = REDIS_DB, database_options: str = "", command: str = "") -> None:
        self._redis_db = redis_db
        self._database_options = database_options
        self._command = command
        self._open = ExitStack()
        self.pids: dict[str, list[int | None]] = {}

    def __enter__(self) -> Self:
        with ExitStack() as opening:
            self.directory = opening.enter_context(_directory())
            self.database_url = opening.enter_context(self._database())
            self.redis_url = opening.enter_context(self._redis())
            self.environ = environment(self.database_url, self.redis_url)
            self._open = opening.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    def empty_redis(self) -> None:
        """Empty the whole Redis database, which was empty when the run began."""
        with Redis.from_url(self.redis_url) as client:
            client.flushdb()

    @property
    def embedded(self) -> set[str]:
        return set(self.pids)

    def about(self) -> dict[str, Any]:
        """Machine, versions, date and command line, which every row has."""
        return dict(self._about)

    @cached_property
    def _about(self) -> dict[str, Any]:
        return describe(self.database_url, self.redis_url, embedded=self.embedded, command=self._command)

    @contextmanager
    def _database(self) -> Iterator[str]:
        if given := env.secret("DATABASE_URL", ""):
            with own_schema(given, self._database_options) as url:
                yield url
            return
        server = EmbeddedPostgres(self.directory / "postgres", parameters=PARAMETERS)
        try:
            self.pids["postgresql"] = [server.start().pid]
            yield server.url
        finally:
            server.discard()

    @contextmanager
    def _redis(self) -> Iterator[str]:
        if given := env.redis_url("REDIS_URL", "_REDIS_URL_HARBOR", "_REDIS_URL_CORE", default=""):
            with own_redis(given, self._redis_db) as url:
                yield url
            return
        server = EmbeddedRedis(self.directory / "redis", extra=IN_MEMORY)
        try:
            self.pids["redis"] = [server.start().pid]
            _give_precedence(server.pid)
            yield server.url
        finally:
            server.discard()


def environment(database_url: str, redis_url: str) -> dict[str, str]:
    """The caller's environment with these servers, and without variables that would change what is measured."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(MEASURED)}
    kept.pop("LOG_LEVEL", None)
    if not env.secret("SECRET_KEY", ""):
        kept["SECRET_KEY"] = secrets.token_urlsafe(64)
    kept.setdefault("ALLOWED_HOSTS", "localhost,127.0.0.1")
    return kept | {"DATABASE_URL": database_url, "REDIS_URL": redis_url, "PYTHONUNBUFFERED": "1"}


@contextmanager
def _directory() -> Iterator[Path]:
    directory = Path(tempfile.mkdtemp(prefix="harbor-refresh-bench-"))
    directory.chmod(0o755)  # started by root, PostgreSQL runs as another user
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _give_precedence(pid: int | None) -> None:
    """Give Redis a higher priority, as if it had a host of its own, if that is allowed."""
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, pid or 0, -15)
