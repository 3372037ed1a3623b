"""`python -m examples.simulation` on the command line, over real servers and a real worker."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from redis import Redis

from examples.simulation.command import Command
from harbor_refresh.local.process import kill_tree
from tests import servers
from tests.variants import variants
from tests.waiting import wait_for

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 300


@pytest.fixture
def environment(database: str, redis: Redis) -> dict[str, str]:
    """The environment of a process that uses this test's database."""
    return os.environ | {
        "DATABASE_URL": servers.postgres.url_for(database),
        "DJANGO_SETTINGS_MODULE": "settings.test",
    }


@pytest.fixture
def worker(environment: dict[str, str], tmp_path: Path) -> Iterator[None]:
    words = ["celery", "-A", "harbor_refresh", "worker", "-c", "2", "--loglevel=INFO"]
    with (tmp_path / "worker.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", *words], cwd=ROOT, env=environment, stdout=log, stderr=log
        )
    yield
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(300)
    finally:
        kill_tree(process)


def simulate(environment: dict[str, str], *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "examples.simulation", *words],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def rows(environment: dict[str, str], query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(environment["DATABASE_URL"]) as connection:
        return connection.execute(query).fetchall()


@pytest.mark.slow
@pytest.mark.usefixtures("worker")
def test_runners_with_every_fault_leave_every_status_right(environment: dict[str, str]) -> None:
    words = ("--executions", "200", "--seed", "7", "--errors", "0.2", "--retries", "0.2")
    more = ("--stops", "0.1", "--duplicates", "0.2", "--late", "0.2", "--reordered", "0.2")
    done = simulate(environment, *words, *more, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(done.stdout)
    assert result["holds"]
    assert result["invariants"] == {"K1": True, "K2": True, "K3": True, "K4": True}
    assert result["mix"]["seed"] == 7
    assert result["tally"]["refused"] == 0
    assert result["tally"]["stops"] > 0
    stored: dict[str, int] = dict(rows(environment, "SELECT status, count(*) FROM execution GROUP BY status"))
    assert sum(stored.values()) == 200
    assert set(stored) == {"Success", "Error", "Stopped"}


@pytest.mark.slow
def test_without_a_worker_it_fails_and_says_which_command_to_run(environment: dict[str, str]) -> None:
    done = simulate(environment, "--executions", "5", "--timeout", "1")
    assert done.returncode == 1
    assert "did not drain in 1 s" in done.stderr
    assert "Start one with: celery -A harbor_refresh worker" in done.stderr
    assert re.search(r"\d in the queue, 0 in processing", done.stderr)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--errors", "2"), "takes a share from 0 to 1"),
        (("--executions", "0"), "takes a whole number from 1"),
        (("--rate", "-1"), "takes 0 or a number from 0.001"),
        (("--timeout", "inf"), "takes a number from 0"),
        (("--vendors", "a:b"), "no colon"),
        (("--executions", "100000", "--tasks", "100"), "lower one of them"),
    ],
)
def test_bad_options_are_refused_before_anything_is_written(
    environment: dict[str, str], words: tuple[str, ...], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match=r"^2$"):
        Command().run_from_argv(["python -m", "examples.simulation", *words])
    assert complaint in capsys.readouterr().err
    assert rows(environment, "SELECT count(*) FROM execution") == [(0,)]


@pytest.fixture
def demo(environment: dict[str, str]) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [sys.executable, "-m", "examples.simulation", "--demo", "--seed", "1"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    yield process
    kill_tree(process)  # type: ignore[arg-type]
    process.communicate()


def running(environment: dict[str, str]) -> bool:
    return rows(environment, "SELECT count(*) > 0 FROM task WHERE status = 'Running'") == [(True,)]


@pytest.mark.parametrize("number", variants(signal.SIGTERM, signal.SIGINT))
def test_the_demo_makes_traffic_and_ends_at_once(
    environment: dict[str, str], demo: "subprocess.Popen[str]", number: signal.Signals
) -> None:
    """It does not wait for the tasks that run, each of which takes seconds."""
    wait_for(lambda: running(environment), "a task that runs")
    demo.send_signal(number)
    out, err = demo.communicate(timeout=300)
    assert running(environment)
    assert demo.returncode == 0, out + err
    assert "Demo traffic ended" in out


@pytest.mark.slow
def test_the_demo_goes_on_after_both_servers_have_restarted(
    environment: dict[str, str], demo: "subprocess.Popen[str]"
) -> None:
    wait_for(lambda: running(environment), "a task that runs")
    servers.redis.kill()
    servers.redis.start()
    servers.postgres.kill()
    assert demo.stderr is not None
    assert any("Waiting for it to come back" in line for line in demo.stderr)
    servers.postgres.start()
    query = "SELECT count(*) FROM execution"
    ((before,),) = rows(environment, query)
    wait_for(lambda: rows(environment, query)[0][0] > before, "more executions")
    demo.send_signal(signal.SIGTERM)
    _, err = demo.communicate(timeout=60)
    assert demo.returncode == 0, err
    assert "The database is back" in err
    assert "Traceback" not in err
