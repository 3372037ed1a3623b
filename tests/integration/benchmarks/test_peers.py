"""`python -m benchmarks peers`: the whole command, small, on servers of its own."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.peers import PEERS
from tests.terminal import ran

pytestmark = pytest.mark.slow

JOBS = 200


@pytest.mark.parametrize("name", PEERS)
def test_each_peer_runs_all_jobs_and_says_so(name: str, tmp_path: Path) -> None:
    told: list[dict[str, Any]] = _bench(name, tmp_path / "rows.json")
    whole, killed = told
    counted = None if name == "celery-chord" else JOBS
    assert (whole["killed"], whole["lost"], whole["cut"], whole["said_done"]) == (False, 0, False, counted)
    assert 0 < whole["start_seconds"] <= whole["told_seconds"]
    assert (killed["killed"], killed["jobs"]) == (True, JOBS)
    assert killed["lost"] <= JOBS - (killed["said_done"] or 0), "it counts no job that has not run"


def _bench(name: str, path: Path) -> list[dict[str, Any]]:
    words = ["--peers", name, "--tasks", str(JOBS), "--patience", "0.1", "--budget", "240", "--json", str(path)]
    env = {key: value for key, value in os.environ.items() if key not in ("DATABASE_URL", "REDIS_URL")}
    done = ran(
        [sys.executable, "-m", "benchmarks", "peers", *words],
        env=env | {"DJANGO_SETTINGS_MODULE": "settings.test"},
        seconds=900,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    rows: list[dict[str, Any]] = json.loads(path.read_text())
    return rows
