"""Which server program is run."""

import os
from pathlib import Path

import pytest

from harbor_refresh.local import checkout
from harbor_refresh.local.postgres import find_postgres
from harbor_refresh.local.redis import find_redis


def test_the_programs_that_the_variables_name_are_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSTGRES_PROGRAMS", "/usr/lib/postgresql/15/bin")
    monkeypatch.setenv("REDIS_PROGRAM", "/usr/bin/redis-server")

    assert find_postgres() == Path("/usr/lib/postgresql/15/bin")
    assert find_redis() == Path("/usr/bin/redis-server")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs PostgreSQL as another account")
def test_each_account_can_run_the_postgresql_of_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The programs are copied with a umask that would hide them."""
    home = tmp_path / "home"
    monkeypatch.setattr(checkout, "_PUBLIC_HOME", home)
    monkeypatch.delenv("POSTGRES_PROGRAMS", raising=False)
    before = os.umask(0o077)
    try:
        programs = find_postgres()
    finally:
        os.umask(before)

    assert programs.is_relative_to(home)
    assert (programs / "postgres").stat().st_mode & 0o777 == 0o755
    assert [one for one in home.rglob("*") if not one.is_symlink() and not one.stat().st_mode & 0o004] == []
    assert [one.name for one in home.iterdir()] == [programs.relative_to(home).parts[0]], "no folder is left over"
