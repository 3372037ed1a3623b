"""The rate limit counts in Redis, for all web processes together."""

import time

import pytest
from pytest_django import Settings

from harbor_refresh.executions.api import access
from harbor_refresh.executions.api.access import Scope
from harbor_refresh.executions.models import ApiToken
from settings import base
from tests import servers
from tests.integration.executions.api.api_client import Program, token
from tests.integration.redis_state import Redis


def test_the_requests_of_all_processes_count_together(
    database: str, redis: Redis, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    monkeypatch.setattr(access.time, "time", lambda: now)  # no minute ends between two requests
    settings.CACHES = {"default": {**base.CACHES["default"], "LOCATION": servers.redis.url}}
    settings.REFRESH_API_REQUESTS_PER_MINUTE = 1_000
    program = Program(token(Scope.READ))
    for _ in range(3):
        program.get("/executions")
    (key,) = redis.keys()
    name = key.decode() if isinstance(key, bytes) else key
    assert name.startswith(f"cache:execution:refresh:api:1:requests:{ApiToken.objects.get().pk}:")
    assert int(redis.get(key) or 0) == 3
    assert 60 < redis.ttl(key) <= 120
