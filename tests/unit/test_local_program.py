"""A command beside a running `make up` finds its servers, unless the environment names others."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harbor_refresh.local.checkout import Checkout
from harbor_refresh.local.lock import held, holder
from harbor_refresh.local.program import FOLLOWED, follow, followed

ROOT = Path(__file__).resolve().parents[2]
ADMIN = "http://127.0.0.1:8001/admin/"
DEV = {"DJANGO_SETTINGS_MODULE": "settings.dev"}
VARIABLES = {"DATABASE_URL": "postgresql://u@127.0.0.1:1/n", "REDIS_URL": "redis://127.0.0.1:1/0"}
STATS = ["manage.py", "harbor", "status"]


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Path]:
    checkout = Checkout(tmp_path)
    checkout.prepare()
    with held(checkout.lock) as announce:
        announce(ADMIN, VARIABLES)
        yield tmp_path


def test_a_command_without_variables_takes_those_of_the_running_stack(running: Path) -> None:
    environ = dict(DEV)
    assert follow(running, STATS, environ) == ADMIN
    assert environ == DEV | VARIABLES


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
    assert follow(running, STATS, environ) == ""
    assert environ == DEV | given


def test_another_variable_of_the_caller_stays(running: Path) -> None:
    path = Checkout(running).lock
    assert holder(path) is not None
    environ = DEV | {"REFRESH_STRATEGY": "scan"}
    follow(running, STATS, environ)
    assert environ["REFRESH_STRATEGY"] == "scan"


def test_the_tests_of_django_take_none(running: Path) -> None:
    environ = dict(DEV)
    assert follow(running, ["manage.py", "test"], environ) == ""
    assert environ == DEV


def test_where_nothing_runs_nothing_is_added(tmp_path: Path) -> None:
    environ = dict(DEV)
    assert follow(tmp_path, STATS, environ) == ""
    checkout = Checkout(tmp_path)
    checkout.prepare()
    with held(checkout.lock) as announce:
        assert follow(tmp_path, STATS, environ) == ""  # it is still starting
        announce(ADMIN, VARIABLES)
    assert follow(tmp_path, STATS, environ) == ""  # it has ended
    assert environ == DEV


def test_no_secret_is_announced() -> None:
    environ = dict.fromkeys(FOLLOWED, "x") | {"SECRET_KEY": "s", "REFRESH_HARBOR_SECRET": "s", "PATH": "/bin"}
    assert set(followed(environ)) == set(FOLLOWED)


def test_a_command_as_a_newcomer_types_it_says_which_server_it_found(running: Path) -> None:
    """With the program itself, copied beside the lock: it reaches for the server that the lock names."""
    (running / "manage.py").write_text((ROOT / "manage.py").read_text())
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    ran = subprocess.run(
        [sys.executable, *STATS],
        cwd=running,
        env=kept | {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    assert "127.0.0.1:1" in ran.stderr
    assert "Redis is away" in ran.stdout
