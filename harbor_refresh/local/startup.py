"""The steps between an empty checkout and running processes. Each raises LocalError if it fails."""

import os
import secrets
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path

import psycopg
from redis import RedisError

from harbor_refresh.local import logs
from harbor_refresh.local.checkout import Checkout
from harbor_refresh.local.child import Child
from harbor_refresh.local.errors import LocalError
from harbor_refresh.local.process import tail
from harbor_refresh.local.services import Service
from harbor_refresh.tasks.queue.connection import connect
from harbor_refresh.tasks.redis_address import is_cluster
from settings import env

SETTINGS = "settings.dev"


class StopRequested(Exception):
    """A signal asked us to end."""


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
    if is_cluster(url):
        raise LocalError("REDIS_URL is a Cluster, and `make up` takes one server, or a primary behind Sentinel.")
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


class Steps:
    """Runs programs to their end, one after another, and checks meanwhile whether to stop."""

    def __init__(self, checkout: Checkout, environ: Mapping[str, str], stopping: Callable[[], bool]) -> None:
        self._checkout = checkout
        self._environ = environ
        self._stopping = stopping

    def migrate(self) -> None:
        self._run("migrate", "manage.py", "migrate", "--noinput")

    def make_admin_account(self) -> str | None:
        """Make the account and return its password; None if there is one already, which does not change."""
        password = secrets.token_urlsafe(12)
        said = self._run(
            "admin-account",
            *("-m", "harbor_refresh.local.admin_account"),
            NEW_ADMIN_PASSWORD=password,
        )
        return password if said.endswith("created") else None

    def wait_for_web(self, url: str, within_seconds: float = 60) -> bool:
        """Whether the web process answered in time, with any page."""
        deadline = time.monotonic() + within_seconds
        while time.monotonic() < deadline:
            if self._stopping():
                raise StopRequested
            try:
                with urllib.request.urlopen(url, timeout=1):  # noqa: S310 - our own address
                    return True
            except urllib.error.HTTPError:
                return True
            except OSError:
                time.sleep(0.1)
        return False

    def _run(self, name: str, *arguments: str, **extra: str) -> str:
        """Run one program to its end; return what it printed."""
        child = Child(
            Service(name, arguments, environ=extra),
            cwd=self._checkout.root,
            environ=self._environ,
            log=logs.fresh(self._checkout.logs / f"{name}.log"),
        ).start()
        try:
            while child.running:
                if self._stopping():
                    raise StopRequested
                time.sleep(0.05)
        finally:
            child.kill()
        if child.exit_code != 0:
            raise LocalError(
                f"{' '.join(arguments)} failed, so the start is given up. {child.log} ends:\n{tail(child.log)}"
            )
        return child.log.read_text(errors="replace").strip()
