"""A PostgreSQL role with few rights, and a Redis of the test's own to break."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from django.db import connection

from harbor_refresh.local.redis import EmbeddedRedis
from harbor_refresh.tasks.checks.facts import Facts, RedisServer
from tests import servers


@pytest.fixture(scope="module")
def redis_to_break(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedRedis]:
    with EmbeddedRedis(tmp_path_factory.mktemp("redis")) as server:
        yield server


def with_redis(url: str) -> Facts:
    """The facts of a service that uses this Redis."""
    facts = Facts()
    facts.redis = RedisServer(url)
    return facts


@pytest.fixture
def facts_of_redis(redis_to_break: EmbeddedRedis, tmp_path: Path) -> Iterator[Facts]:
    """The Redis to break, as it was after its start, before and after the test."""
    facts = with_redis(redis_to_break.url)
    client = facts.redis.client
    names = ("maxmemory-policy", "appendonly", "save")
    before = {name: client.config_get(name)[name] for name in names}
    yield facts
    client.replicaof("NO", "ONE")
    for name, value in before.items():
        client.config_set(name, value)
    client.flushall()
    client.close()


@pytest.fixture
def role(database: str) -> Iterator[str]:
    """A role that may not do what a superuser may; the test connects as it."""
    name = f"reader_of_{database}"
    with psycopg.connect(servers.postgres.url_for(database), autocommit=True) as server:
        server.execute(f"CREATE ROLE {name} LOGIN".encode())
        server.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {name}".encode())
        connection.close()
        before = connection.settings_dict["USER"]
        connection.settings_dict["USER"] = name
        yield name
        connection.close()
        connection.settings_dict["USER"] = before
        server.execute(f"DROP OWNED BY {name}".encode())
        server.execute(f"DROP ROLE {name}".encode())
