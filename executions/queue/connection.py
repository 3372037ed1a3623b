"""The connection to Redis, and the one place where its errors become ours.

Two clients, because a verb may or may not be sent twice. Adding, completing and looking are the same done
twice, so the `patient` client tries again over a new connection. A claim that is sent twice would take two
batches, so the `single` client never repeats: it fails, and the node starts a new life.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from redis import Redis
from redis.backoff import ExponentialBackoff, NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from executions.conf import refresh_settings
from executions.errors import QueueUnavailable


@contextmanager
def redis_errors_translated() -> Iterator[None]:
    try:
        yield
    except RedisError as exc:
        raise QueueUnavailable(f"Redis: {type(exc).__name__}: {exc}") from exc


def connect(url: str, timeout: float, *, tries: int) -> Redis:
    backoff = ExponentialBackoff(cap=0.5, base=0.02) if tries > 1 else NoBackoff()
    return Redis.from_url(
        url,
        socket_timeout=timeout,
        socket_connect_timeout=timeout,
        socket_keepalive=True,
        health_check_interval=30,
        retry=Retry(backoff, tries - 1),
    )


@cache
def patient() -> Redis:
    conf = refresh_settings()
    return connect(conf.redis_url, conf.redis_timeout, tries=4)


@cache
def single() -> Redis:
    conf = refresh_settings()
    return connect(conf.redis_url, conf.redis_timeout, tries=1)
