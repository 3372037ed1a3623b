"""Without REFRESH_TRACES nothing of OpenTelemetry is imported, and a change costs what it did without traces."""

import json
import os
import subprocess
import sys
import threading
from typing import Any

import pytest
import redis as redis_library
from django.db import connection
from django.test.utils import CaptureQueriesContext

from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.tasks.pipeline import legacy_marks, wakeup
from harbor_refresh.tasks.pipeline.dispatcher import dispatch
from harbor_refresh.tasks.pipeline.refresher import refresh_claim
from harbor_refresh.tasks.queue import execution_queue
from tests import servers
from tests.faults.cluster import ROOT
from tests.integration.sample_executions import made, status_of

ONE_CHANGE = """
import json, sys
if sys.argv[2] == "missing":
    sys.modules["opentelemetry"] = None
import redis
before = set(sys.modules)  # redis-py imports the metrics of OpenTelemetry if they are installed
import django
django.setup()
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.tasks.pipeline import wakeup
from harbor_refresh.tasks.pipeline.dispatcher import dispatch
from harbor_refresh.tasks.pipeline.refresher import refresh_claim
from harbor_refresh.tasks.queue import execution_queue
import harbor_refresh.wsgi
wakeup.send_tick = lambda: None
report([Report(int(sys.argv[1]), "Success")])
refresh_claim(execution_queue().claim("me", 10).claim)
dispatch(lambda claims: [refresh_claim(claim) for claim in claims], 0)  # it may be the other process's execution
print(json.dumps(sorted(name for name in sys.modules.keys() - before if name.startswith("opentelemetry"))))
"""


def process(database: str, task: int, packages: str) -> "subprocess.Popen[str]":
    """Have a process report, claim and refresh, with OpenTelemetry installed or missing. It writes the modules of
    OpenTelemetry that it has imported beside those that redis-py imports."""
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "settings.test",
        "DATABASE_URL": servers.postgres.url_for(database),
        "REDIS_URL": servers.redis.url,
    }
    command = [sys.executable, "-c", ONE_CHANGE, str(task), packages]
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)


@pytest.mark.usefixtures("redis")
def test_a_process_without_traces_imports_no_module_of_opentelemetry(database: str) -> None:
    pairs = [made(1) for _ in range(2)]
    started = [
        process(database, task, packages)
        for (_, (task,)), packages in zip(pairs, ("installed", "missing"), strict=True)
    ]
    assert [json.loads(one.communicate(timeout=120)[0].splitlines()[-1]) for one in started] == [[], []]
    assert [status_of(execution) for execution, _ in pairs] == ["Success", "Success"]


@pytest.fixture
def commands(redis: redis_library.Redis, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Each command to Redis of this thread; a script by its name."""
    sent: list[str] = []
    thread = threading.get_ident()
    execute = redis_library.Redis.execute_command

    def noting(self: Any, *args: Any, **options: Any) -> Any:
        if threading.get_ident() == thread:
            sent.append(names.get(args[1], "?") if args[0] == "EVALSHA" else args[0])
        return execute(self, *args, **options)

    monkeypatch.setattr(wakeup, "send_tick", lambda: None)
    monkeypatch.setattr(wakeup, "check_later", lambda *_, **__: None)
    _refresh_one()  # loads the scripts
    names = {one.sha: name for name, one in execution_queue()._registered.items()}
    monkeypatch.setattr(legacy_marks.pacing, "LEGACY_KEYS_PER_SECOND", 0)  # no look for marks of an old release
    monkeypatch.setattr(redis_library.Redis, "execute_command", noting)
    return sent


def _refresh_one() -> None:
    _, (task,) = made(1)
    report([Report(task, "Success")])
    claims: list[Any] = []
    dispatch(claims.extend, 0)
    refresh_claim(claims[0])


@pytest.mark.usefixtures("database")
def test_without_traces_one_change_costs_these_commands_and_statements(commands: list[str]) -> None:
    _, (task,) = made(1)
    with CaptureQueriesContext(connection) as captured:
        report([Report(task, "Success")])
        claims: list[Any] = []
        dispatch(claims.extend, 0)
        refresh_claim(claims[0])
    assert commands == ["mark", "claim", "take_over", "complete"]
    assert [one["sql"].strip().splitlines()[0][:50] for one in captured.captured_queries] == [
        "BEGIN",
        "-- Applies any number of reports, exactly as if th",
        "COMMIT",
        "SELECT current_setting('transaction_read_only')",
        "-- Reads the paused queues, the oldest pause first",
        "-- Adds to counters, in the transaction of the cal",
        "BEGIN",
        "-- Like lock_executions, but never waits: a row th",
        "-- Brings the status and end_time of executions to",
        "COMMIT",
    ]
