"""What `make up` makes of its environment."""

from pathlib import Path

import pytest

from harbor_refresh.local import startup
from harbor_refresh.local.__main__ import main
from harbor_refresh.local.checkout import Checkout
from harbor_refresh.local.errors import LocalError
from harbor_refresh.local.ports import choose_port
from harbor_refresh.local.screen import Screen
from harbor_refresh.local.up import StopRequested, Up


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    made = Checkout(tmp_path)
    made.prepare()
    return made


@pytest.fixture(autouse=True)
def nothing_given(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DATABASE_URL", "REDIS_URL", "_REDIS_URL_CORE", "SECRET_KEY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(f"{name}_FILE", raising=False)


def test_without_variables_no_server_counts_as_given() -> None:
    assert startup.given_database() == ""
    assert startup.given_redis() == ""


def test_a_given_database_that_does_not_answer_gives_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DATABASE_URL", f"postgresql://me:secret@127.0.0.1:{choose_port()}/db")

    with pytest.raises(LocalError, match="DATABASE_URL is set, but no PostgreSQL") as told:
        startup.given_database()

    assert "\n" not in str(told.value)
    assert "secret" not in str(told.value)


@pytest.mark.parametrize("variable", ["REDIS_URL", "_REDIS_URL_CORE"])
def test_a_given_redis_that_does_not_answer_gives_one_line(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, f"redis://:secret@127.0.0.1:{choose_port()}/0")

    with pytest.raises(LocalError, match="REDIS_URL is set, but no Redis") as told:
        startup.given_redis()

    assert "secret" not in str(told.value)


def test_the_processes_get_the_addresses_and_no_variable_of_make(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAKEFLAGS", "-j4")

    environ = startup.environment(checkout, "postgresql://db", "redis://cache")

    assert environ["DATABASE_URL"] == "postgresql://db"
    assert environ["REDIS_URL"] == "redis://cache"
    assert environ["DJANGO_SETTINGS_MODULE"] == "settings.dev"
    assert environ["SECRET_KEY"] == checkout.secret_key()
    assert "MAKEFLAGS" not in environ


def test_a_given_secret_key_is_kept(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "mine")

    assert startup.environment(checkout, "", "")["SECRET_KEY"] == "mine"


def test_a_step_that_fails_is_reported_with_the_end_of_its_log(checkout: Checkout) -> None:
    up = Up(checkout, Screen())

    with pytest.raises(LocalError, match=r"(?s)manage\.py migrate failed.*No such file"):
        up.run_to_end("migrate", "manage.py", "migrate")  # there is no manage.py in this directory


def test_a_stop_ends_the_running_step(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    (checkout.root / "manage.py").write_text("import time; time.sleep(60)")
    up = Up(checkout, Screen())
    monkeypatch.setattr(up, "_is_stopping", True)

    with pytest.raises(StopRequested):
        up.run_to_end("migrate", "manage.py", "migrate")


def test_an_unknown_command_is_misuse(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["down"]) == 2
    assert "usage:" in capsys.readouterr().err
