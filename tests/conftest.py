"""What every test may ask for: a database of its own, and an empty Redis."""

import itertools
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import redis as redis_library
from django.core.management import call_command
from django.db import connection, connections
from pytest_django import DjangoDbBlocker

from tasks.queue import execution_queue
from tasks.queue.queue import ExecutionQueue
from tests import servers

TEMPLATE = "harbor_refresh_template"
_numbers = itertools.count(1)


def _administer(statement: str) -> None:
    """Run a statement in the server's own database."""
    import psycopg

    with psycopg.connect(servers.postgres.url_for("postgres"), autocommit=True) as server:
        server.execute(statement)


def _use(name: str) -> None:
    connections["default"].close()
    connections["default"].settings_dict["NAME"] = name


def pytest_xdist_auto_num_workers() -> int:
    """One process more than there are cores, because many tests wait for other processes."""
    return (os.cpu_count() or 1) + 1


@pytest.fixture(scope="session")
def template(django_db_blocker: DjangoDbBlocker) -> str:
    """A migrated database, from which each test's own is copied."""
    with django_db_blocker.unblock():
        _administer(f"CREATE DATABASE {TEMPLATE}")
        _use(TEMPLATE)
        call_command("migrate", verbosity=0)
        connection.close()
    return TEMPLATE


@contextmanager
def fresh_database(template: str, blocker: DjangoDbBlocker) -> Iterator[str]:
    """The name of a fresh, migrated database that Django uses meanwhile. Commits are real."""
    name = f"harbor_refresh_{next(_numbers)}"
    _administer(f"CREATE DATABASE {name} TEMPLATE {template}")
    with blocker.unblock():
        _use(name)
        yield name
        connection.close()
    _administer(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def database(template: str, django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """A fresh database for this test."""
    with fresh_database(template, django_db_blocker) as name:
        yield name


@pytest.fixture(autouse=True)
def no_look_outlives_its_test() -> Iterator[None]:
    """A process that knows of work checks a moment later (tasks/pipeline/wakeup.py); not in the next test."""
    yield
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.cancel()
            thread.join()


@pytest.fixture(scope="session", autouse=True)
def redis_server() -> None:
    """The run's Redis, for every test but those of executions/, whose conftest overrides this."""
    servers.start_redis()


@pytest.fixture
def redis() -> Iterator[redis_library.Redis]:
    """The run's Redis, empty."""
    client = redis_library.Redis.from_url(servers.redis.url)
    client.flushall()
    yield client
    client.close()


@pytest.fixture
def queue(redis: redis_library.Redis) -> ExecutionQueue:
    return execution_queue()
