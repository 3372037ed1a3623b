"""The real servers of a test run: one PostgreSQL and one Redis, on free ports, for this run alone.

A pytest plugin (named in pyproject.toml) and not a conftest, because Django's settings are read before any
conftest: the addresses must be in the environment by then. A server that cannot be had fails the run.
"""

import os
import shutil
import tempfile
from pathlib import Path

from harbor_refresh.local.postgres import EmbeddedPostgres
from harbor_refresh.local.redis import EmbeddedRedis

directory = Path(tempfile.mkdtemp(prefix="harbor-refresh-test-"))
directory.chmod(0o755)
postgres = EmbeddedPostgres(
    directory / "postgres",
    parameters={"fsync": "off", "full_page_writes": "off"},
)
redis = EmbeddedRedis(directory / "redis")


#: What these begin with is taken out of the environment: a test says itself what it wants.
OURS = ("REFRESH_", "EXECUTION_STATUS_", "CELERY_", "CORE_INSTANCE_", "_REDIS_URL", "FLOWER_")


def start() -> None:
    postgres.start()
    redis.start()
    os.environ["DATABASE_URL"] = postgres.url
    os.environ["REDIS_URL"] = redis.url
    for name in list(os.environ):
        if name.startswith(OURS):
            del os.environ[name]


def pytest_unconfigure() -> None:
    redis.stop(immediate=True)
    postgres.stop(immediate=True)
    shutil.rmtree(directory, ignore_errors=True)


start()
