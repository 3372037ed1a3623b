"""The service caches nothing."""

from django.contrib.auth.models import User
from django.test import Client

from tests.integration.redis_state import Redis


def test_the_search_of_the_admin_keeps_nothing_in_redis(database: str, redis: Redis, client: Client) -> None:
    client.force_login(User.objects.create_superuser("root"))
    assert b"Executions" in client.get("/admin/search/?s=executions").content
    assert redis.keys() == []
