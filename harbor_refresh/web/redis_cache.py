"""Django's cache in the Redis of the queue, one server or behind Sentinel.

It holds the counts of the API's rate limit. Its client gives up after a second, because a request waits for it.
"""

from typing import Any

from django.core.cache.backends import redis
from redis import Redis

from harbor_refresh.tasks.queue.connection import connect

SECONDS = 1.0


class WholeNumbers(redis.RedisSerializer):
    """Django's serializer would unpickle what another user of Redis has written."""

    def loads(self, data: Any) -> int:
        return int(data)


class Client(redis.RedisCacheClient):
    def __init__(self, servers: list[str], **options: Any) -> None:
        super().__init__(servers, WholeNumbers, **options)
        self._redis = connect(servers[0], SECONDS, tries=1)
        self._redis.places = ()  # that it gave up says nothing about the queue, whose clients try for longer

    def get_client(self, key: Any = None, *, write: bool = False) -> Redis:
        return self._redis


class RedisCache(redis.RedisCache):
    def __init__(self, server: str, params: dict[str, Any]) -> None:
        super().__init__([server], params)  # as a list, because Django would split the address at its commas
        self._class = Client
