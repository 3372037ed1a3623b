"""The embedded servers: real ones, started, restarted and killed."""

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from harbor_refresh.local.errors import LocalError
from harbor_refresh.local.postgres import EmbeddedPostgres
from tests import servers
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


def test_data_of_another_major_version_are_refused_with_a_reason(
    postgres: EmbeddedPostgres,
) -> None:
    postgres.stop()
    (postgres.directory / "data" / "PG_VERSION").write_text("13\n")

    with pytest.raises(LocalError, match="are PostgreSQL 13's"):
        postgres.start()


def test_a_setting_that_postgres_refuses_is_reported_with_the_end_of_its_log(folder: Path) -> None:
    server = EmbeddedPostgres(folder / "postgres", parameters={"max_connections": "many"})
    try:
        with pytest.raises(LocalError, match="invalid value for parameter"):
            server.start()
    finally:
        server.discard()


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
    killed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr

    pids = [int(word) for word in killed.stdout.split()]
    wait_for(lambda: not any(is_alive(pid) for pid in pids), "the servers to end")

    again = EmbeddedPostgres(folder / "postgres", parameters=QUICK)
    try:
        assert ask(again.start(), "SELECT 1") == 1
    finally:
        again.discard()
