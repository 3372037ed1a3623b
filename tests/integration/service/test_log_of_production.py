"""The log of real processes with the settings of production: each line is one JSON object with its ids."""

import json
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest
from redis import Redis

from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.models import Execution
from harbor_refresh.local.ports import LOOPBACK, choose_port
from tests import servers
from tests.faults.cluster import Cluster
from tests.integration.sample_executions import made
from tests.waiting import wait_for

SECRET = "0123456789abcdefghijklmnopqrstuvwxyz-ABCDEFGHIJKLMNOPQRSTUVWXYZ"
PRODUCTION = {
    "DJANGO_SETTINGS_MODULE": "settings.production",
    "SECRET_KEY": SECRET,
    "ALLOWED_HOSTS": LOOPBACK,
    "SECURE_SSL_REDIRECT": "false",
}


def events(text: str) -> list[dict[str, Any]]:
    """Every line, and every line must be an object."""
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def cluster(database: str, redis: Redis, tmp_path: Path) -> Any:
    made_here = Cluster(database, tmp_path)
    made_here.env |= PRODUCTION
    yield made_here
    made_here.end()


def test_a_worker_names_the_message_and_the_executions_of_each_refresh(cluster: Cluster) -> None:
    worker = cluster.worker(concurrency=1)
    execution, (task,) = made(1)
    report([Report(task, "Success")])
    wait_for(lambda: Execution.objects.filter(status="Success").exists(), "the refresh", log=worker.log)
    wait_for(lambda: "Refresh outdate execution status done" in worker.text(), "its line", log=worker.log)
    written = [line for line in worker.text().splitlines() if line.startswith("{")]
    told = events("\n".join(written))
    (refresh,) = (one for one in told if one["message"].startswith("Refresh outdate"))
    assert (refresh["celery_task"], refresh["line"]) == (
        "tasks.refresh_executions",
        "Refresh outdate execution status done, %d succeed, %d failed",
    )
    assert f"execution {execution.pk} TEST" in refresh["arguments"]
    received = [one for one in told if one["logger"] == "celery.worker.strategy"]
    assert refresh["celery_id"] in {one["celery_id"] for one in received}


def test_the_web_process_logs_requests_with_their_ids_and_without_their_queries(cluster: Cluster) -> None:
    port = choose_port()
    words = ["-m", "gunicorn", "-c", "python:harbor_refresh.logs.for_gunicorn", "harbor_refresh.wsgi:application"]
    web = cluster.start(
        "web",
        [sys.executable, *words, "--bind", f"{LOOPBACK}:{port}", "--no-control-socket", "--access-logfile", "-"],
    )
    url = f"http://{LOOPBACK}:{port}/api/v1/executions?vendor_id=4711"

    def answers() -> bool:
        try:
            return httpx2.get(url, headers={"X-Request-ID": "mine-1"}, trust_env=False).status_code == 401
        except httpx2.HTTPError:
            return False

    wait_for(answers, "the web process", log=web.log)
    wait_for(lambda: "mine-1" in web.text(), "the line of access", log=web.log)
    told = events(web.text())
    (line, *_) = (one["message"] for one in told if one["logger"] == "gunicorn.access")
    assert "GET /api/v1/executions 401" in line
    assert line.endswith("mine-1")
    assert "4711" not in web.text()


def test_a_secret_in_an_error_is_masked_in_the_log_of_a_worker(cluster: Cluster) -> None:
    wrong = f"postgresql://stranger:hidden-word@{LOOPBACK}:{servers.postgres.port}/none"
    beat = cluster.start(
        "beat", [sys.executable, "-m", "celery", "-A", "harbor_refresh", "beat", "--pidfile="], DATABASE_URL=wrong
    )
    wait_for(lambda: "Beat waits for its schedule" in beat.text(), "beat to wait", log=beat.log)
    assert "hidden-word" not in beat.text()
    assert SECRET not in beat.text()
