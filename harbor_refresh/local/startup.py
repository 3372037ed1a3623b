"""What `make up` makes of its environment: the servers that variables name, and the variables of its processes."""

import os
import sys
from pathlib import Path

import psycopg
from redis import RedisError

from harbor_refresh.local.checkout import Checkout
from harbor_refresh.local.errors import LocalError
from harbor_refresh.local.program import SETTINGS
from harbor_refresh.tasks.queue.connection import connect
from settings import env


def given_database() -> str:
    """DATABASE_URL of the caller's environment, or an empty text; LocalError if no database answers there."""
    url = env.secret("DATABASE_URL", "")
    try:
        if url:
            psycopg.connect(url, connect_timeout=5).close()
    except psycopg.Error as exc:
        raise _no_answer("DATABASE_URL", "PostgreSQL", exc) from exc
    return url


def given_redis() -> str:
    """REDIS_URL of the caller's environment, or an empty text; LocalError if no Redis answers there."""
    url = env.redis_url("REDIS_URL", "_REDIS_URL_HARBOR", "_REDIS_URL_CORE", default="")
    try:
        if url:
            with connect(url, 5, tries=1) as client:
                client.ping()
    except RedisError as exc:
        raise _no_answer("REDIS_URL", "Redis", exc) from exc
    return url


def _no_answer(variable: str, server: str, error: Exception) -> LocalError:
    reason = " ".join(str(error).split())
    return LocalError(
        f"{variable} is set, but no {server} answers there: {reason}. Start that server or correct "
        f"the variable; without it, `make up` starts a server of its own."
    )


def environment(checkout: Checkout, database_url: str, redis_url: str) -> dict[str, str]:
    """The environment of every process: ours, the two addresses, and this checkout's secret."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environ.get("PATH", "")])
    environ["PYTHONUNBUFFERED"] = "1"
    environ["DJANGO_SETTINGS_MODULE"] = SETTINGS
    environ["DATABASE_URL"] = database_url
    environ["REDIS_URL"] = redis_url
    if not env.secret("SECRET_KEY", ""):
        environ["SECRET_KEY"] = checkout.secret_key()
    return environ
