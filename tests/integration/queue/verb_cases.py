"""How the cases of a verb are written down: all that Redis holds before, what the verb returns, and all
that Redis holds after."""

from dataclasses import dataclass, field
from typing import Any

from harbor_refresh.tasks.queue.claim import Claim
from harbor_refresh.tasks.queue.queue import ExecutionQueue
from tests.integration.redis_state import PREFIX, Clock, Redis, whole_redis

NOW = 1_000_000_000_000
SECOND = 1_000_000


@dataclass
class Case:
    """`result` is what the verb returned."""

    before: dict[str, Any]
    after: dict[str, Any]
    result: Any = None
    claim: Claim = field(default_factory=lambda: Claim("n1", "7", ("1:A", "2:B")))
    counted: bool = True


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


def played(redis: Redis, case: Case, verb: Any) -> Any:
    put(redis, case.before)
    result = verb()
    assert whole_redis(redis) == case.after
    return result


def waiting(count: int) -> set[str]:
    return {f"{number}:C" for number in range(1, count + 1)}


def token(member: str, stamp: int = NOW) -> str:
    return f"{member}:waiting@me:{stamp}"


#: Whoever claims or takes over gives a sign of life with it.
ALIVE = {"nodes": {"me": NOW}}

#: The two on the edges live, the two beyond them do not.
SIGNS = {
    "b": NOW - 10 * SECOND,
    "c": NOW - 10 * SECOND - 1,
    "d": NOW + 10 * SECOND,
    "e": NOW + 10 * SECOND + 1,
}
