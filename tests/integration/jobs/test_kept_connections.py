"""The connections on which runs begin (tests/faults/test_pools.py has real workers)."""

import threading
from collections.abc import Iterator

import pytest
from celery import current_app
from django.db import connection

from harbor_refresh.tasks.jobs.running import kept_connections
from harbor_refresh.tasks.jobs.running.kept_connections import MOST, KeptConnections


def backend() -> int:
    """The process of the server behind the connection."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])


def begun_on(kept: KeptConnections) -> int:
    with kept.use():
        return backend()


@pytest.fixture
def kept(database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[KeptConnections]:
    """Those of a project with Celery's defaults."""
    monkeypatch.setitem(current_app.conf, "CELERY_DB_REUSE_MAX", None)
    its = KeptConnections()
    yield its
    its.stop()


def test_runs_begin_on_one_connection_and_leave_that_of_django_to_the_job(kept: KeptConnections) -> None:
    of_django = backend()
    first = begun_on(kept)
    connection.close()
    assert begun_on(kept) == first != of_django
    assert backend() != first


def test_where_celery_keeps_its_connection_there_is_no_other(
    kept: KeptConnections, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(current_app.conf, "CELERY_DB_REUSE_MAX", 100)
    assert begun_on(KeptConnections()) == backend()


def test_after_an_error_and_after_a_pause_the_next_run_has_a_new_connection(
    kept: KeptConnections, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = begun_on(kept)
    with pytest.raises(OSError, match="a time limit"), kept.use():
        raise OSError("a time limit")
    second = begun_on(kept)
    monkeypatch.setattr(kept_connections, "IDLE_SECONDS", 0)
    assert len({first, second, begun_on(kept)}) == 3


def test_after_many_begins_at_once_few_connections_are_left(kept: KeptConnections) -> None:
    all_begin = threading.Barrier(MOST + 3)

    def begin() -> None:
        with kept.use():
            backend()
            all_begin.wait(60)

    threads = [threading.Thread(target=begin) for _ in range(MOST + 3)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(kept._free) == MOST
