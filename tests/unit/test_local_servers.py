"""The embedded servers: real ones, started, restarted and killed."""

import os
import signal
import socket
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest
from redis import Redis

from harbor_refresh.local import LocalError
from harbor_refresh.local.ports import LOOPBACK
from harbor_refresh.local.postgres import EmbeddedPostgres
from harbor_refresh.local.redis import EmbeddedRedis
from tests import servers
from tests.terminal import ran
from tests.waiting import wait_for

QUICK = {"fsync": "off"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that `nobody` can enter, as whom PostgreSQL runs if we are root."""
    return servers.directory / tmp_path.name


@pytest.fixture
def postgres(folder: Path) -> Iterator[EmbeddedPostgres]:
    server = EmbeddedPostgres(folder / "postgres", parameters=QUICK).start()
    yield server
    server.discard()


@pytest.fixture
def redis(folder: Path) -> Iterator[EmbeddedRedis]:
    server = EmbeddedRedis(folder / "redis").start()
    yield server
    server.discard()


def ask(server: EmbeddedPostgres, query: str) -> object:
    with psycopg.connect(server.url) as connection:
        row = connection.execute(query.encode()).fetchone()
    return row[0] if row else None


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_stale_pid_file_does_not_stop_the_next_start(postgres: EmbeddedPostgres) -> None:
    postgres.kill()
    pid_file = postgres.directory / "data" / "postmaster.pid"
    lines = pid_file.read_text().splitlines()
    pid_file.write_text("\n".join([str(os.getpid()), *lines[1:]]) + "\n")

    postgres.start()

    assert ask(postgres, "SELECT 1") == 1


def test_a_setting_that_postgres_refuses_is_reported_with_the_end_of_its_log(folder: Path) -> None:
    server = EmbeddedPostgres(folder / "postgres", parameters={"max_connections": "many"})
    try:
        with pytest.raises(LocalError, match="invalid value for parameter"):
            server.start()
    finally:
        server.discard()


def test_redis_never_evicts_and_persists_everything(redis: EmbeddedRedis) -> None:
    with Redis.from_url(redis.url) as client:
        told = client.config_get("maxmemory-policy", "appendonly", "save")

    assert told == {"maxmemory-policy": "noeviction", "appendonly": "yes", "save": ""}


def test_a_taken_port_is_left_to_its_owner_and_reported(folder: Path) -> None:
    with socket.socket() as other:
        other.bind((LOOPBACK, 0))
        other.listen(1)
        wished = other.getsockname()[1]
        server = EmbeddedRedis(folder / "redis", wished)
        with server:
            assert server.port != wished


@pytest.mark.parametrize("kind", [EmbeddedPostgres, EmbeddedRedis])
def test_a_port_that_is_taken_before_the_first_start_is_left_to_its_owner(
    folder: Path, kind: type[EmbeddedPostgres] | type[EmbeddedRedis]
) -> None:
    server = kind(folder / "server")
    chosen = server.port
    try:
        with socket.create_server((LOOPBACK, chosen)):
            server.start()
        assert server.port != chosen
        assert str(server.port) in server.url
    finally:
        server.discard()


def test_a_restarted_server_keeps_its_port_even_if_it_is_taken_meanwhile(redis: EmbeddedRedis) -> None:
    """Its clients know no other."""
    redis.stop()
    chosen = redis.port
    with socket.create_server((LOOPBACK, chosen)), pytest.raises(LocalError, match="in use"):
        redis.start()
    assert redis.start().port == chosen


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process its parent ended")
def test_the_servers_of_a_killed_process_end_and_the_next_start_finds_their_data(folder: Path) -> None:
    program = textwrap.dedent(
        f"""
        import os, pathlib, signal
        from harbor_refresh.local.postgres import EmbeddedPostgres
        from harbor_refresh.local.redis import EmbeddedRedis
        folder = pathlib.Path({str(folder)!r})
        postgres = EmbeddedPostgres(folder / "postgres", parameters={QUICK!r}).start()
        redis = EmbeddedRedis(folder / "redis").start()
        print(postgres.pid, redis.pid, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    killed = ran([sys.executable, "-c", program])
    assert killed.returncode == -signal.SIGKILL, killed.stderr

    pids = [int(word) for word in killed.stdout.split()]
    wait_for(lambda: not any(is_alive(pid) for pid in pids), "the servers to end")

    again = EmbeddedPostgres(folder / "postgres", parameters=QUICK)
    try:
        assert ask(again.start(), "SELECT 1") == 1
    finally:
        again.discard()
