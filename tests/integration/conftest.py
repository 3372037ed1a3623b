"""What tests of several rooms ask for: a client of the admin, and a replica that lags."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import connections, models, router
from django.test import Client
from pytest_django import Settings
from redis import Redis

from harbor_refresh.executions.conf import pacing
from harbor_refresh.local.redis import EmbeddedRedis
from tests import servers
from tests.conftest import TEMPLATE
from tests.integration.admin_client import signed_in


@pytest.fixture
def admin(database: str) -> Client:
    return signed_in(superuser=True)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[EmbeddedRedis]:
    """A Redis of the test's own."""
    with EmbeddedRedis(tmp_path / "redis") as server:
        yield server
        if server.pid:
            os.kill(server.pid, signal.SIGCONT)


@pytest.fixture
def operator(server: EmbeddedRedis) -> Iterator[Redis]:
    """Who sets the server up, over a connection of his own."""
    with Redis.from_url(server.url) as client:
        yield client


@pytest.fixture
def loopback(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Webhooks may go to 127.0.0.1 and nowhere else, and wait as long as the machine needs."""
    settings.REFRESH_DELIVER_NETWORKS = ("127.0.0.1/32",)
    monkeypatch.setattr(pacing, "DELIVER_TIMEOUT_SECONDS", 60.0)


class ReadsFromTheReplica:
    def db_for_read(self, model: type[models.Model], **_: Any) -> str:
        return "replica"

    def db_for_write(self, model: type[models.Model], **_: Any) -> str:
        return "default"


@pytest.fixture
def replica(database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A replica that has not received a row yet, and never will."""
    name = f"{database}_replica"
    with psycopg.connect(servers.postgres.url_for("postgres"), autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE}".encode())
        connections.settings["replica"] = {**connections.settings["default"], "NAME": name}
        monkeypatch.setattr(router, "routers", [*router.routers, ReadsFromTheReplica()])
        yield
        connections["replica"].close()
        del connections["replica"]
        del connections.settings["replica"]
        server.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
