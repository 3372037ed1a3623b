"""The rate limit counts in Redis, for all web processes together; nothing else is cached there."""

import pickle
import time

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from harbor_refresh.executions.api import access
from harbor_refresh.executions.api.access import Scope
from harbor_refresh.executions.models import ApiToken
from harbor_refresh.web.redis_cache import RedisCache
from settings import base
from tests import servers
from tests.integration.executions.api.api_client import Program, token
from tests.integration.redis_state import Redis


@pytest.fixture(autouse=True)
def caches_of_the_service(settings: Settings) -> None:
    settings.CACHES = {
        name: {**one, "LOCATION": servers.redis.url} if "LOCATION" in one else one
        for name, one in base.CACHES.items()
    }


def test_the_requests_of_all_processes_count_together(
    database: str, redis: Redis, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    monkeypatch.setattr(access.time, "time", lambda: now)  # no minute ends between two requests
    settings.REFRESH_API_REQUESTS_PER_MINUTE = 1_000
    program = Program(token(Scope.READ))
    for _ in range(3):
        program.get("/executions")
    (key,) = redis.keys()
    name = key.decode() if isinstance(key, bytes) else key
    assert name.startswith(f"cache:execution:refresh:api:1:requests:{ApiToken.objects.get().pk}:")
    assert int(redis.get(key) or 0) == 3
    assert 60 < redis.ttl(key) <= 120


def test_the_search_of_the_admin_keeps_nothing_in_redis(database: str, redis: Redis, client: Client) -> None:
    client.force_login(User.objects.create_superuser("root"))
    assert b"Executions" in client.get("/admin/search/?s=executions").content
    assert redis.keys() == []


def test_what_others_have_written_to_redis_is_not_unpickled(redis: Redis) -> None:
    redis.set(":1:count", pickle.dumps([1]))
    with pytest.raises(ValueError, match="invalid literal"):
        RedisCache(servers.redis.url, {}).get("count")
