"""The real servers of a test run: one PostgreSQL and one Redis, on free ports, for this run alone.

A pytest plugin (named in pyproject.toml) and not a conftest, because Django's settings are read before any
conftest: the addresses must be in the environment by then. PostgreSQL starts at once, Redis before the first test
that may reach it (tests/conftest.py). A server that cannot be had fails the run. With `-n`, the process that hands
the tests to others starts none; whether it is that one is known when its session starts.
"""

import os
import shutil
import socket
import tempfile
from pathlib import Path

import pytest

from harbor_refresh.local import ports
from harbor_refresh.local.postgres import EmbeddedPostgres
from harbor_refresh.local.redis import EmbeddedRedis

#: To make a database and drop it takes 0.3 s on a slow disk and 0.02 s in memory; most tests do.
MEMORY = Path("/dev/shm")  # noqa: S108  # files in it get random names
ENOUGH_BYTES = 2 * 1024**3


#: So that each part has some hundreds.
MOST_PARTS = 32


def own_ports() -> range:
    """A part of the ports for each process of a run. A port is free between its choice and the start of its
    server, and while the server is down, so two processes could choose the same."""
    parts = min(MOST_PARTS, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    return ports._RANGE[number % parts :: parts]


ports._RANGE = own_ports()


def _parent() -> Path | None:
    """Memory, if there is enough of it; else wherever temporary files go."""
    there = os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= ENOUGH_BYTES
    return MEMORY if there else None


directory = Path(tempfile.mkdtemp(prefix="harbor-refresh-test-", dir=_parent()))
directory.chmod(0o755)
#: Without a sync it is faster, and a kill of the server loses nothing. But a kill tears pages that are being
#: written to memory, so `full_page_writes` stays on.
postgres = EmbeddedPostgres(
    directory / "postgres",
    parameters={
        "fsync": "off",
        "max_wal_size": "256MB",
        "max_prepared_transactions": "2",
        "shared_preload_libraries": "pg_stat_statements",
    },
)
redis = EmbeddedRedis(directory / "redis")
#: Holds the port until Redis starts. Meanwhile this process collects thousands of tests, and others choose ports.
held = socket.create_server((ports.LOOPBACK, redis.port))


#: What these begin with is taken out of the environment: a test says itself what it wants.
OURS = ("REFRESH_", "EXECUTION_STATUS_", "CELERY_", "CORE_INSTANCE_", "_REDIS_URL", "FLOWER_")


def name_them() -> None:
    os.environ["DATABASE_URL"] = postgres.url
    os.environ["REDIS_URL"] = redis.url
    for name in list(os.environ):
        if name.startswith(OURS):
            del os.environ[name]


def pytest_sessionstart(session: pytest.Session) -> None:
    if session.config.getoption("dist", "no") == "no":
        postgres.start()
        assert postgres.url == os.environ["DATABASE_URL"], "another process took the port of PostgreSQL"


def start_redis() -> None:
    """Start Redis at the address that the settings have read."""
    held.close()
    redis.start()
    assert redis.url == os.environ["REDIS_URL"], "another process took the port of Redis before Redis could"


def pytest_unconfigure() -> None:
    held.close()
    redis.kill()
    postgres.kill()
    shutil.rmtree(directory, ignore_errors=True)


if "PYTEST_XDIST_WORKER" in os.environ:
    postgres.start()
name_them()
