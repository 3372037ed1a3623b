"""A broker that is down, dies or hangs: the report lands and is marked all the same."""

import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from kombu.exceptions import OperationalError

from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.models import Task
from harbor_refresh.local.redis import EmbeddedRedis
from harbor_refresh.tasks.broker.celery_queues import TICKS
from tests import servers
from tests.integration.pipeline.pipeline_state import marked, member
from tests.integration.redis_state import Redis
from tests.integration.sample_executions import made
from tests.waiting import slowness

pytestmark = pytest.mark.usefixtures("database", "redis")


@pytest.mark.parametrize("error", [OperationalError, AttributeError])
def test_a_report_is_applied_and_logged_whatever_error_a_wake_up_raises(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch, redis: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    def down(queue: str) -> int:
        raise error("the broker is down")

    monkeypatch.setattr("harbor_refresh.tasks.celery_tasks.waiting", down)
    execution, tasks = made(1)
    with caplog.at_level(logging.INFO, "harbor_refresh"):
        assert report([Report(tasks[0], "Running")]).applied == 1
    assert marked(redis) == {member(execution)}
    assert [(one.levelname, one.getMessage()) for one in caplog.records] == [
        ("WARNING", "Could not wake a tick, the next one of the schedule will do: the broker is down")
    ]


REPORTS_TWICE = """
import sys, django
django.setup()
from harbor_refresh.executions.lifecycle.reports import Report, report
for status in ("Scheduled", "Running"):
    sys.stdin.readline()
    print(report([Report(int(sys.argv[1]), status)]).applied, flush=True)
"""


@pytest.mark.parametrize("is_killed", [True, False], ids=["killed", "hanging"])
def test_a_dead_separate_broker_stops_no_report(
    is_killed: bool, database: str, redis: Redis, tmp_path: Path
) -> None:
    """With a connection to it open, which breaks (or says nothing more) in the middle of a hint."""
    execution, tasks = made(1)
    broker = EmbeddedRedis(tmp_path / "broker")
    broker.start()
    environment = os.environ | {
        "DATABASE_URL": servers.postgres.url_for(database),
        "CELERY_BROKER_URL": broker.url,
        "DJANGO_SETTINGS_MODULE": "settings.dev",
    }
    command = [sys.executable, "-c", REPORTS_TWICE, str(tasks[0])]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as ran:
        assert ran.stdin is not None
        assert ran.stdout is not None
        assert ran.stderr is not None
        pid = broker.pid
        assert pid is not None
        try:
            ran.stdin.write("\n")
            ran.stdin.flush()
            assert ran.stdout.readline() == "1\n"
            with Redis.from_url(broker.url) as client:
                assert client.llen(TICKS) == 1
            redis.flushall()
            os.kill(pid, signal.SIGKILL if is_killed else signal.SIGSTOP)
            slow = slowness()
            began = time.monotonic()
            ran.stdin.write("\n")
            ran.stdin.flush()
            assert ran.stdout.readline() == "1\n"
            assert time.monotonic() - began < 20 * slow
            said = ran.stderr.read()
            assert ran.wait(timeout=300) == 0
        finally:
            ran.kill()
            if not is_killed:
                os.kill(pid, signal.SIGCONT)
            broker.kill()
    assert said.count("Could not wake a tick, the next one of the schedule will do: ") == 1
    assert "Traceback" not in said
    assert Task.objects.get().status == "Running"
    assert marked(redis) == {member(execution)}
