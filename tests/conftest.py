"""What every test may ask for: a database of its own, and an empty Redis."""

import itertools
import os
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import hypothesis
import psycopg
import pytest
import redis as redis_library
from django.core.management import call_command
from django.db import connection, connections
from pytest_django import DjangoDbBlocker
from xdist.scheduler import LoadFileScheduling

from harbor_refresh.executions.news.counters import kept
from harbor_refresh.tasks.conf import pacing
from harbor_refresh.tasks.jobs.running import kept_connections
from harbor_refresh.tasks.queue import execution_queue
from harbor_refresh.tasks.queue.queue import ExecutionQueue
from tests import servers

#: Here, and once: a fixture imported at two places is two fixtures, and each would make the template's database.
pytest_plugins = ("tests.distribution.fixtures", "tests.harbor.fixtures")

#: An example waits for a database, and all examples of a test have one. A failure says how to repeat it.
hypothesis.settings.register_profile(
    "tests",
    deadline=None,
    print_blob=True,
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)
hypothesis.settings.load_profile("tests")

TEMPLATE = "harbor_refresh_template"
BROWSER = "tests/browser/"
LONG = (BROWSER, "tests/faults/", "tests/acceptance/", "tests/unit/")
#: The longest with which the doctor finds a session sound.
LONGEST = "60s"
_numbers = itertools.count(1)


_server: list[psycopg.Connection] = []


def _administer(statement: str) -> None:
    """Run a statement in the server's own database, on a connection that is kept. A test may have ended it by a
    restart of the server: then nothing was run, and it is run on a new one. If there is no server, its own error
    says so."""
    kept = _kept_connection()
    try:
        kept.execute(statement.encode())
    except psycopg.OperationalError:
        _server.pop().close()
        _kept_connection().execute(statement.encode())


def _kept_connection() -> psycopg.Connection:
    if not _server:
        _server.append(psycopg.connect(servers.postgres.url_for("postgres"), autocommit=True))
    return _server[0]


def pytest_configure() -> None:
    """A run that a shell has put into the background ignores Ctrl-C, and so would each program that a test starts
    and ends with it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_unconfigure() -> None:
    """Before the server ends (tests/servers.py)."""
    for connected in _server:
        connected.close()


def _use(name: str) -> None:
    connections["default"].close()
    kept_connections.of_this_process.stop()
    connections["default"].settings_dict["NAME"] = name


def _wait_longer() -> None:
    """A thread of a test waits for a lock until the test has gone on, which may take longer than the 5 s of the
    settings on a slow machine, and longer than a transaction may be idle. So may a new connection. Not so in
    processes that tests start."""
    given = connections["default"].settings_dict["OPTIONS"]
    given["connect_timeout"] = 60
    for timeout in ("lock_timeout", "idle_in_transaction_session_timeout"):
        assert f"{timeout}=" in given["options"]
        given["options"] = re.sub(rf"{timeout}=\w+", f"{timeout}={LONGEST}", given["options"])


def pytest_xdist_auto_num_workers() -> int:
    """Two processes more than there are cores, because many tests wait for other processes."""
    return (os.cpu_count() or 1) + 2


class ByFile(LoadFileScheduling):
    """A file is one piece of work. All of tests/browser is one, because each process that has a piece of it starts
    the service and a Chromium."""

    def _split_scope(self, nodeid: str) -> str:
        return BROWSER if nodeid.startswith(BROWSER) else str(super()._split_scope(nodeid))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFile | None:
    return ByFile(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Folders whose files take long come first, so that no process begins a long file when the others end."""
    items.sort(key=lambda item: next((n for n, one in enumerate(LONG) if item.nodeid.startswith(one)), len(LONG)))


@pytest.fixture(scope="session")
def template(django_db_blocker: DjangoDbBlocker) -> str:
    """A migrated database, from which each test's own is copied."""
    with django_db_blocker.unblock():
        _wait_longer()
        _administer(f"CREATE DATABASE {TEMPLATE}")
        _use(TEMPLATE)
        call_command("migrate", verbosity=0)
        connection.close()
    return TEMPLATE


@contextmanager
def fresh_database(template: str, blocker: DjangoDbBlocker) -> Iterator[str]:
    """The name of a fresh, migrated database that Django uses meanwhile, and then the one before again. Commits
    are real."""
    before = connections["default"].settings_dict["NAME"]
    name = f"harbor_refresh_{next(_numbers)}"
    # to copy files takes three quarters of the time of a copy through the log; PostgreSQL 14 knows nothing else
    strategy = "STRATEGY FILE_COPY" if _kept_connection().info.server_version >= 150_000 else ""
    _administer(f"CREATE DATABASE {name} TEMPLATE {template} {strategy}")
    with blocker.unblock():
        _use(name)
        yield name
        _use(before)
    _administer(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def database(template: str, django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """A fresh database for this test."""
    with fresh_database(template, django_db_blocker) as name:
        yield name


@pytest.fixture(scope="session", autouse=True)
def nothing_is_compiled() -> Iterator[None]:
    """PostgreSQL compiles no statement, because that takes longer than to run it. It counts compiled statements
    since version 15. The wheel's PostgreSQL cannot compile, so only `make test-stock` can fail here."""
    yield
    with psycopg.connect(servers.postgres.url_for("postgres"), autocommit=True) as server:
        if server.info.server_version >= 150_000:
            server.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
            asked = "SELECT query FROM pg_stat_statements WHERE jit_functions > 0 ORDER BY query"
            assert server.execute(asked).fetchall() == []


@pytest.fixture(autouse=True)
def constants_come_back() -> Iterator[None]:
    """Constants that a test has set (tests/integration/redis_state.py) are those of the next test no more."""
    before = {name: value for name, value in vars(pacing).items() if name.isupper()}
    yield
    vars(pacing).update(before)


@pytest.fixture(autouse=True)
def no_look_outlives_its_test() -> Iterator[None]:
    """A process that knows of work checks a moment later (tasks/pipeline/wakeup.py); not in the next test. Nor
    does it add its counts there (executions/news/counters.py)."""
    yield
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.cancel()
            thread.join()
    kept.begin()


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
