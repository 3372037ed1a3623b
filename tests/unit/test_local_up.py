"""Keeping processes running, and ending them all in time."""

import signal
import sys
import time
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import psutil
import pytest
from rich.console import Console

from harbor_refresh.local.screen import Screen
from harbor_refresh.local.services import Service
from harbor_refresh.local.up import Child, Restarts, end_all
from tests.waiting import wait_for

SLEEP = "import time; time.sleep(60)"  # a program that runs until it is ended
STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up'); {SLEEP}"
LEAVES_ONE_BEHIND = (
    "import subprocess, sys, time;"
    f"subprocess.Popen([sys.executable, '-c', {SLEEP!r}]); print('up', flush=True); {SLEEP}"
)


@pytest.fixture
def child(tmp_path: Path) -> Callable[[str], Child]:
    def make(program: str, name: str = "child") -> Child:
        service = Service(name, ("-u", "-c", program))
        return Child(service, cwd=tmp_path, environ={}, log=tmp_path / f"{name}.log")

    return make


def living_in(folder: Path) -> list[int]:
    """The processes that work in this directory."""
    found = []
    for process in psutil.process_iter(["cwd", "status"]):
        if process.info["cwd"] == str(folder) and process.info["status"] != "zombie":
            found.append(process.pid)
    return found


@pytest.fixture
def much_time(monkeypatch: pytest.MonkeyPatch) -> float:
    """That all children have to end: longer than any of them runs."""
    seconds = 300.0
    monkeypatch.setattr("harbor_refresh.local.up.CHILDREN_HAVE_SECONDS", seconds)
    return seconds


def test_a_child_that_obeys_is_ended_at_once(
    child: Callable[[str], Child], tmp_path: Path, much_time: float
) -> None:
    obedient = child(SLEEP).start()
    began = time.monotonic()

    end_all([obedient], [])

    assert time.monotonic() - began < much_time
    assert obedient.exit_code == -signal.SIGTERM
    assert living_in(tmp_path) == []


def test_processes_that_a_child_left_behind_end_with_it(child: Callable[[str], Child], tmp_path: Path) -> None:
    parent = child(LEAVES_ONE_BEHIND).start()
    wait_for(lambda: len(living_in(tmp_path)) == 2, "both processes")

    end_all([parent], [])

    wait_for(lambda: living_in(tmp_path) == [], "both to end", seconds=30)  # they end by themselves after 60 s


def test_a_stubborn_child_is_killed_in_time(
    child: Callable[[str], Child], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harbor_refresh.local.up.CHILDREN_HAVE_SECONDS", 0.3)
    stubborn = child(STUBBORN).start()
    wait_for(lambda: "up" in stubborn.log.read_text(), "the child to ignore SIGTERM")

    end_all([stubborn], [])

    assert stubborn.exit_code == -signal.SIGKILL


def test_a_child_that_dies_is_reported_with_the_end_of_its_log_and_starts_again_after_growing_pauses(
    child: Callable[[str], Child],
) -> None:
    dying = child("import sys; sys.exit('no such broker')").start()
    said = StringIO()
    screen = Screen(Console(file=said))
    restarts = Restarts(dying)

    def again() -> bool:
        restarts.look(screen)
        return "starts again in 4 s" in said.getvalue()

    wait_for(again, "three deaths")

    assert [f"starts again in {pause} s" in said.getvalue() for pause in (1, 2, 8)] == [True, True, False]
    assert dying.log.read_text().count("no such broker") == 3


def test_services_run_with_the_current_python() -> None:
    assert Service("x", ("-V",)).argv == [sys.executable, "-V"]
