"""What `make up` keeps in the checkout: its lock, and the file by which a command finds the running servers."""

import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from unittest.mock import Mock

import pytest

from harbor_refresh.local import LocalError
from harbor_refresh.local.checkout import Checkout, held
from harbor_refresh.local.program import FOLLOWED, follow, followed

DEV = {"DJANGO_SETTINGS_MODULE": "settings.dev"}
VARIABLES = {"DATABASE_URL": "postgresql://u@127.0.0.1:1/n", "REDIS_URL": "redis://127.0.0.1:1/0"}
STATS = ["manage.py", "harbor", "status"]


@pytest.fixture
def running(tmp_path: Path) -> Path:
    checkout = Checkout(tmp_path)
    checkout.prepare()
    checkout.announce(VARIABLES)
    return tmp_path


def test_a_command_takes_the_servers_of_the_running_stack_and_keeps_its_own_variables(running: Path) -> None:
    environ = DEV | {"REFRESH_STRATEGY": "scan"}
    assert follow(running, STATS, environ)
    assert environ == DEV | VARIABLES | {"REFRESH_STRATEGY": "scan"}
    assert not follow(running, ["manage.py", "test"], dict(DEV))


@pytest.mark.parametrize(
    "given",
    [
        {"DATABASE_URL": "postgresql://other/n"},
        {"REDIS_URL": "redis://other"},
        {"_REDIS_URL_CORE": "redis://other"},
        {"CELERY_BROKER_URL": "redis://other"},
        {"DATABASE_URL_FILE": "/run/secrets/database"},
        {"DJANGO_SETTINGS_MODULE": "settings.production"},
    ],
    ids=lambda given: next(iter(given)),
)
def test_one_variable_that_names_a_server_is_meant(running: Path, given: dict[str, str]) -> None:
    environ = DEV | given
    assert not follow(running, STATS, environ)
    assert environ == DEV | given


def test_where_nothing_runs_nothing_is_added(tmp_path: Path) -> None:
    environ = dict(DEV)
    assert not follow(tmp_path, STATS, environ)
    checkout = Checkout(tmp_path)
    checkout.prepare()
    checkout.variables.touch()
    assert follow(tmp_path, STATS, environ).startswith("`make up` is not running"), "it is just written"
    assert environ == DEV


def test_a_command_that_looks_for_the_servers_takes_no_lock(
    running: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A `make up` that asks for the lock at the same moment would be refused."""
    monkeypatch.setattr("fcntl.flock", Mock(side_effect=AssertionError))
    assert follow(running, STATS, dict(DEV))


def test_no_secret_is_announced() -> None:
    environ = dict.fromkeys(FOLLOWED, "x") | {"SECRET_KEY": "s", "REFRESH_HARBOR_SECRET": "s", "PATH": "/bin"}
    assert set(followed(environ)) == set(FOLLOWED)


def test_a_second_holder_learns_that_the_first_runs(tmp_path: Path) -> None:
    path = tmp_path / "up.lock"
    with held(path), pytest.raises(LocalError, match="already runs in this checkout"), held(path):
        pass


def test_the_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    path = tmp_path / "up.lock"
    program = textwrap.dedent(
        f"""
        import os, pathlib, signal
        from harbor_refresh.local.checkout import held
        with held(pathlib.Path({str(path)!r})):
            os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    killed = subprocess.run([sys.executable, "-c", program], check=False)
    assert killed.returncode == -signal.SIGKILL

    with held(path):
        pass


def test_only_its_owner_can_read_what_is_announced(running: Path) -> None:
    assert Checkout(running).variables.stat().st_mode & 0o077 == 0


def test_only_its_owner_can_enter_what_is_kept(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path)
    checkout.prepare()
    assert checkout.local.stat().st_mode & 0o077 == 0
