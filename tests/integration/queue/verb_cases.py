"""What Redis holds before a verb, written down."""

from typing import Any

from harbor_refresh.tasks.queue.queue import ExecutionQueue
from tests.integration.redis_state import PREFIX, Clock, Redis

NOW = 1_000_000_000_000
SECOND = 1_000_000


def put(redis: Redis, state: dict[str, Any]) -> None:
    for name, value in state.items():
        key = PREFIX + name
        match value:
            case set():
                redis.sadd(key, *value)
            case dict() if name in ("nodes", "left"):
                redis.zadd(key, value)
            case dict():
                redis.hset(key, mapping=value)
            case _:
                redis.set(key, value)


def flight(*tokens: str) -> dict[str, Any]:
    return {"processing": set(tokens)} if tokens else {}


Faked = tuple[ExecutionQueue, Clock]


def waiting(count: int) -> set[str]:
    return {f"{number}:C" for number in range(1, count + 1)}


def token(member: str, stamp: int = NOW) -> str:
    return f"{member}:waiting@me:{stamp}"


#: Whoever claims or takes over gives a sign of life with it.
ALIVE = {"nodes": {"me": NOW}}
