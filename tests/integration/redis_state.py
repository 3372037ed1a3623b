"""What Redis holds, as values; and queues whose clock is moved by the test alone."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
import redis as redis_library

from harbor_refresh.tasks.conf import Refresh, pacing, refresh_settings
from harbor_refresh.tasks.queue import connection
from harbor_refresh.tasks.queue.connection import connect
from harbor_refresh.tasks.queue.queue import ExecutionQueue
from harbor_refresh.tasks.queue.scripts import SCRIPTS
from tests import servers

CLOCK = "the clock of the test"

Redis = redis_library.Redis


PREFIX = "cache:execution:refresh:"
#: Keys that only an overview reads; most verbs change one of them, and no verb decides by them. And how far ticks
#: have looked for marks of an old release, which each tick may change.
OBSERVED = ("waiting", "ticked", "dead", "legacy_cursor", "legacy_rest")


def whole_redis(client: Redis, *, presence: bool = False, observed: bool = False) -> dict[str, Any]:
    """Every key under the prefix, without it, with all it holds. Redis has no empty sets or hashes. Without
    `presence`, which each sign of life changes, and without what is observed, unless the test is about that."""
    names = (*(() if observed else OBSERVED), *(() if presence else ("presence",)))
    left_out = {f"{PREFIX}{name}".encode() for name in names}
    keys = [key for key in client.scan_iter(match=f"{PREFIX}*", count=1000) if key not in left_out]
    with client.pipeline(transaction=False) as pipe:  # a test may look after each of thousands of steps
        for key in keys:
            pipe.type(key)
        kinds = [kind.decode() for kind in pipe.execute()]
        for key, kind in zip(keys, kinds, strict=True):
            match kind:
                case "set":
                    pipe.smembers(key)
                case "hash":
                    pipe.hgetall(key)
                case "zset":
                    pipe.zrange(key, 0, -1, withscores=True)
                case "string":
                    pipe.get(key)
                case _:
                    pipe.type(key)
        values = pipe.execute()
    return {
        _text(key).removeprefix(PREFIX): _as_value(kind, value)
        for key, kind, value in zip(keys, kinds, values, strict=True)
    }


def _as_value(kind: str, value: Any) -> Any:
    match kind:
        case "set":
            return {_text(one) for one in value}
        case "hash":
            return {_text(k): _text(v) for k, v in value.items()}
        case "zset":
            return {_text(one): int(score) for one, score in value}
        case "string":
            return _text(value or b"expired")
        case _:
            return kind


def _text(raw: bytes) -> str:
    return raw.decode(errors="backslashreplace")


class Clock:
    """The time that the scripts see: microseconds, moved by the test alone. If nodes are `heard`, signs of life
    keep coming while it moves, as they have since long ago."""

    def __init__(self, client: Redis, now: int = 1_000_000_000_000, *, heard: bool = False) -> None:
        self.client = client
        self.now = now
        self._heard = heard
        self.set(now)
        if heard:
            signs_of_life_come(client, since=1, heard=now)

    def set(self, now: int) -> None:
        self.now = now
        self.client.hset(CLOCK, mapping={"s": now // 1_000_000, "us": now % 1_000_000})
        if self._heard:
            self.client.hset(f"{PREFIX}presence", "heard", now)

    def move(self, seconds: float) -> None:
        self.set(self.now + round(seconds * 1_000_000))


def signs_of_life_come(client: Redis, *, since: int, heard: int) -> dict[str, str]:
    """To this server, without a gap since then, the last one at `heard`. What Redis holds of that."""
    presence = {"since": str(since), "heard": str(heard), "server": str(client.info("server")["run_id"])}
    client.hset(f"{PREFIX}presence", mapping=presence)  # type: ignore[arg-type]
    return presence


def with_clock_of_test(text: str) -> str:
    return text.replace("redis.call('TIME')", f"redis.call('HMGET', '{CLOCK}', 's', 'us')")


def with_scripts(queue: ExecutionQueue, client: Redis, edited: Callable[[str], str]) -> ExecutionQueue:
    queue._scripts = {name: client.register_script(edited(one.source())) for name, one in SCRIPTS.items()}
    return queue


def settings_with(**given: Any) -> Refresh:
    """Return the settings with these values. Names of constants are set for the rest of the test, which
    `constants_come_back` ends."""
    for name in [one for one in given if one in CONSTANTS]:
        setattr(pacing, CONSTANTS[name], given.pop(name))
    return replace(refresh_settings(), **given)


CONSTANTS = {
    "chunk": "CHUNK",
    "depth": "DEPTH",
    "node_ttl": "NODE_TTL_SECONDS",
    "stale": "STALE_SECONDS",
    "pause": "DATABASE_PAUSE_SECONDS",
    "rest": "LONGEST_REST_SECONDS",
    "legacy_rate": "LEGACY_KEYS_PER_SECOND",
}


def queue_with_clock(client: Redis, **conf: Any) -> tuple[ExecutionQueue, Clock]:
    """Make a queue of these settings, whose scripts take the time from the test."""
    return with_scripts(queue_with(client, **conf), client, with_clock_of_test), Clock(client, heard=True)


def queue_with(client: Redis, **conf: Any) -> ExecutionQueue:
    return ExecutionQueue(settings_with(**conf), client, client)


def absent_redis() -> Redis:
    """A client of a server that is not there."""
    from harbor_refresh.local.ports import choose_port

    return connect(f"redis://127.0.0.1:{choose_port(None)}/0", 0.2, tries=1)


def only_waits_take_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of an operation is what it has waited for answers, so a machine that wakes the test late changes no
    number of attempts."""
    now = [0.0]
    read = redis_library.Connection.read_response

    def counting(self: Any, *words: Any, **options: Any) -> Any:
        waits = self._sock.gettimeout() if self._sock else 0.0
        try:
            return read(self, *words, **options)
        except redis_library.TimeoutError:
            now[0] += waits or 0.0
            raise

    monkeypatch.setattr(redis_library.Connection, "read_response", counting)
    monkeypatch.setattr(connection, "monotonic", lambda: now[0])


def new_client() -> Redis:
    return redis_library.Redis.from_url(servers.redis.url)


@contextmanager
def sets_are_hash_tables(client: Redis) -> Iterator[None]:
    """Redis keeps a set of up to 128 members as a list, which SSCAN answers whole: not what this is about.
    Before 7.2 it had no such lists for words."""
    name = "set-max-listpack-entries"
    before = client.config_get(name)
    for key in before:
        client.config_set(key, 1)
    yield
    for key, value in before.items():
        client.config_set(key, value)
