"""Keeping processes running, and ending them all in time."""

import signal
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from harbor_refresh.local import LocalError
from harbor_refresh.local.__main__ import main
from harbor_refresh.local.checkout import Checkout
from harbor_refresh.local.process import end
from harbor_refresh.local.redis import EmbeddedRedis
from harbor_refresh.local.services import Service
from harbor_refresh.local.up import StopRequested, Up, start_again
from tests.waiting import wait_for

SLEEP = "import time; time.sleep(60)"  # a program that runs until it is ended
STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up'); {SLEEP}"
LEAVES_ONE_BEHIND = (
    "import subprocess, sys, time;"
    f"subprocess.Popen([sys.executable, '-c', {SLEEP!r}]); print('up', flush=True); {SLEEP}"
)


@pytest.fixture
def child(tmp_path: Path) -> Callable[[str], Service]:
    def make(program: str) -> Service:
        service = Service("child", ("-u", "-c", program), cwd=tmp_path)
        service.log = tmp_path / "child.log"
        return service

    return make


def living_in(folder: Path) -> list[int]:
    """The processes that work in this directory."""
    found = []
    for process in psutil.process_iter(["cwd", "status"]):
        if process.info["cwd"] == str(folder) and process.info["status"] != "zombie":
            found.append(process.pid)
    return found


#: That all children have to end: longer than any of them runs.
MUCH_TIME = 300.0


def test_processes_that_a_child_left_behind_end_with_it(child: Callable[[str], Service], tmp_path: Path) -> None:
    parent = child(LEAVES_ONE_BEHIND).start()
    wait_for(lambda: len(living_in(tmp_path)) == 2, "both processes")

    end([parent], MUCH_TIME)

    wait_for(lambda: living_in(tmp_path) == [], "both to end", seconds=30)  # they end by themselves after 60 s


def test_a_stubborn_child_is_killed_in_time(child: Callable[[str], Service]) -> None:
    stubborn = child(STUBBORN).start()
    wait_for(lambda: "up" in stubborn.log.read_text(), "the child to ignore SIGTERM")

    end([stubborn], 0.3)

    assert stubborn.exit_code == -signal.SIGKILL


def test_a_child_that_dies_is_reported_with_the_end_of_its_log_and_starts_again(
    child: Callable[[str], Service], capsys: pytest.CaptureFixture[str]
) -> None:
    dying = child("import sys; sys.exit('no such broker')").start()

    def again() -> bool:
        start_again(dying)
        return dying.log.read_text().count("no such broker") >= 3

    wait_for(again, "three deaths")
    dying.kill()
    assert "child ended and starts again" in capsys.readouterr().out


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    made = Checkout(tmp_path)
    made.prepare()
    return made


def test_a_step_that_fails_is_reported_with_the_end_of_its_log(checkout: Checkout) -> None:
    up = Up(checkout)

    with pytest.raises(LocalError, match=r"(?s)manage\.py migrate failed.*No such file"):
        up.run_to_end("migrate", "manage.py", "migrate")  # there is no manage.py in this directory


def test_a_stop_ends_the_running_step(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    (checkout.root / "manage.py").write_text("import time; time.sleep(60)")
    up = Up(checkout)
    monkeypatch.setattr(up, "_is_stopping", True)

    with pytest.raises(StopRequested):
        up.run_to_end("migrate", "manage.py", "migrate")
    with pytest.raises(StopRequested):
        up._up(EmbeddedRedis(checkout.redis), "redis")
    assert not checkout.redis.exists()


def test_the_password_of_a_new_account_is_said_at_once(
    checkout: Checkout, capsys: pytest.CaptureFixture[str]
) -> None:
    """A Ctrl-C before the web answers would lose it."""
    (checkout.root / "manage.py").touch()
    login = Up(checkout)._make_admin_account()
    assert f"user admin, {login}\n" in capsys.readouterr().out


def test_an_unknown_command_is_misuse(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main("down")
    assert "usage:" in capsys.readouterr().err
