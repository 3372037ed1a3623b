"""What tests of several rooms ask for: a client of the admin, and a replica that lags."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.db import connections, models, router
from django.test import Client

from tests import servers
from tests.conftest import TEMPLATE
from tests.integration.admin_client import signed_in


@pytest.fixture
def admin(database: str) -> Client:
    return signed_in(superuser=True)


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
