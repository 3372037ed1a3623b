"""The state of the queue over HTTP, and what is answered while Redis is down."""

from collections.abc import Iterator

import pytest
from pytest_django import Settings

from harbor_refresh.executions.api.access import Scope
from harbor_refresh.executions.lifecycle.quarantines import quarantine
from harbor_refresh.tasks.queue import execution_queue
from harbor_refresh.tasks.queue.connection import patient, single
from harbor_refresh.tasks.queue.queue import ExecutionQueue
from tests.integration.executions.api.api_client import Program, answered, token
from tests.integration.sample_executions import made


def test_the_counts_are_those_of_redis_and_of_the_database(database: str, queue: ExecutionQueue) -> None:
    execution, _ = made()
    quarantine([execution.pk], 5)
    queue.mark(["1:SCAN", "2:SCAN", "3:SCAN"])
    queue.heartbeat("live")
    queue.claim("live", 1)
    assert Program(token(Scope.READ)).get("/queue") == {
        "backlog": 2,
        "in_flight": 1,
        "failed_before": 0,
        "quarantined": 1,
        "nodes": 1,
        "paused": [],
    }


@pytest.fixture
def redis_is_down(settings: Settings) -> Iterator[None]:
    of_this_process = (execution_queue, patient, single)
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    for one in of_this_process:
        one.cache_clear()
    yield
    for one in of_this_process:
        one.cache_clear()


def test_a_redis_that_is_down_is_a_problem_that_passes_and_the_log_says_why(
    database: str, redis_is_down: None, caplog: pytest.LogCaptureFixture
) -> None:
    answer = Program(token(Scope.READ)).send("GET", "/queue")
    assert {name: answered(answer, 503)[name] for name in ("title", "detail")} == {
        "title": "Redis is down",
        "detail": "send the request again after `Retry-After` seconds; the log of the service says why",
    }
    assert answer["Retry-After"] == "5"
    (line,) = [one.getMessage() for one in caplog.records if one.name == "django.request"]
    assert line.startswith("Service Unavailable: /api/v1/queue: Redis: ConnectionError: Error 111 connecting to ")
