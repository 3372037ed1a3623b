"""The status hook over real HTTP: its address, the size of a body, and the mark."""

from collections.abc import Iterator

import httpx2
import pytest
import redis as redis_library
from pytest_django import Settings

from harbor_refresh.executions.lifecycle.creation import NewExecution, NewTask, create
from tests.integration.executions.hook_requests import PATH, SECRET, as_bytes, wire
from tests.integration.redis_state import whole_redis
from tests.integration.service.web_server import web_server

pytestmark = pytest.mark.usefixtures("database", "redis")


@pytest.fixture
def runner(settings: Settings) -> Iterator[httpx2.Client]:
    """A runner with one connection that stays open."""
    settings.REFRESH_HARBOR_SECRET = SECRET
    headers = {"Authorization": f"Harbor-Secret {SECRET}", "Content-Type": "application/json"}
    with web_server() as url, httpx2.Client(base_url=url, headers=headers, timeout=30) as client:
        yield client


def test_an_address_without_an_id_marks_and_a_body_that_is_too_large_is_refused(
    runner: httpx2.Client, redis: redis_library.Redis
) -> None:
    execution = create(NewExecution("TEST", tasks=[NewTask("j")]))
    assert runner.post(PATH.rstrip("/"), content=as_bytes(wire("j"))).status_code == 200
    assert whole_redis(redis)["queue:v2"] == {f"{execution.pk}:TEST"}
    assert runner.post(f"{PATH}1", content=b" " * 1_000_001).status_code == 413
    assert runner.post(f"{PATH}1", content=as_bytes(wire("j", "Success"))).status_code == 200
