"""Checks of Redis: of the queue's, and of the broker's if that is another server; and whether RabbitMQ answers."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import cast

from harbor_refresh.doctor import rabbitmq
from harbor_refresh.doctor.check import Check, Problem, warning
from harbor_refresh.doctor.facts import Facts, Need, RedisServer
from harbor_refresh.executions.errors import QueueRefused, QueueRightMissing, QueueUnavailable
from harbor_refresh.tasks.queue.keys import Keys

OLDEST = (6, 2)
#: Nearly all memory is taken.
FULL = 0.9
#: The types of keys that another program is most likely to have taken.
TYPES = {
    "queue": b"set",
    "processing": b"set",
    "attempts": b"hash",
    "nodes": b"zset",
    "jobs": b"hash",
    "counts": b"hash",
    "presence": b"hash",
}

Look = Callable[[Facts, RedisServer], Iterator[Problem]]


def reachable(facts: Facts, server: RedisServer) -> Iterator[Problem]:
    try:
        with server.asked() as client:
            client.ping()
    except QueueRightMissing as exc:
        yield Problem(
            f"{_name(server)} answers and refuses this program. {exc}",
            f"Give the user of {server.variable} the rights of redis.acl or broker.acl, in deploy/attach.",
        )
    except QueueRefused as exc:
        yield Problem(
            f"{_name(server)} answers and refuses this program. {exc}",
            f"Correct the user name and the password in {server.variable}.",
        )
    except QueueUnavailable as exc:
        yield Problem(
            f"{_name(server)} is away, or does not answer in time. {exc}",
            f"Start it, or correct {server.variable}. Look with: redis-cli -u ADDRESS ping",
        )


def version(facts: Facts, server: RedisServer) -> Iterator[Problem]:
    found = str(server.info.get("redis_version", ""))
    numbers = tuple(int(part) for part in found.split(".")[:2] if part.isdecimal())
    if numbers and numbers < OLDEST:
        yield Problem(
            f"{_name(server)} is {found}, and 6.2 is the oldest that is supported.",
            "Upgrade the server, or use Valkey.",
        )


def eviction(facts: Facts, server: RedisServer) -> Iterator[Problem]:
    policy = str(server.info.get("maxmemory_policy", "noeviction"))
    if policy != "noeviction":
        yield Problem(
            f"{_name(server)} evicts keys when its memory is full (maxmemory-policy {policy}), and so loses "
            "messages and marks.",
            "redis-cli config set maxmemory-policy noeviction; and the same line in its configuration file.",
        )


def persistence(facts: Facts, server: RedisServer) -> Iterator[Problem]:
    info = server.info
    for name, what in (
        ("rdb_last_bgsave_status", "snapshot"),
        ("aof_last_write_status", "write to the append-only file"),
    ):
        if info.get(name, "ok") != "ok":
            yield Problem(
                f"The last {what} of {_name(server)} failed. Such a server refuses writes (MISCONF).",
                "Look at its log and its disk: redis-cli info persistence",
            )
    if not info.get("aof_enabled") and server.saves is False:
        yield warning(
            f"{_name(server)} keeps nothing over a restart. No status is lost, but reconcile needs a minute or "
            "two to find the executions that waited, and jobs are sent again later.",
            "redis-cli config set appendonly yes; and the same line in its configuration file.",
        )


def memory(facts: Facts, server: RedisServer) -> Iterator[Problem]:
    most, used = int(server.info.get("maxmemory", 0)), int(server.info.get("used_memory", 0))
    if most and used >= FULL * most:
        yield Problem(
            f"{_name(server)} uses {used / most:.0%} of its maxmemory ({most / 1024**2:,.0f} MiB). When it is "
            "full it refuses every mark and message (OOM).",
            f"redis-cli config set maxmemory {2 * most}; or find what fills it: redis-cli --bigkeys",
        )


def primary(facts: Facts, server: RedisServer) -> Iterator[Problem]:
    if server.info.get("role") == "slave":
        host, port = server.info.get("master_host"), server.info.get("master_port")
        yield Problem(
            f"{_name(server)} is a replica, which takes no writes.",
            f"Name its primary, {host}:{port}, in {server.variable}.",
        )


def key_types(facts: Facts) -> Iterator[Problem]:
    keys = Keys(facts.conf.key_prefix)
    names = [str(getattr(keys, one)) for one in TYPES]
    with facts.redis.asked() as client:
        found = [cast("bytes", client.type(name)) for name in names]
    for name, kind, wanted in zip(names, found, TYPES.values(), strict=True):
        if kind not in (wanted, b"none"):
            yield Problem(
                f"The key {name} is a {kind.decode()} and not a {wanted.decode()}: another program wrote it.",
                "Give this service a REFRESH_KEY_PREFIX or a Redis database of its own, then: redis-cli del "
                f"'{name}'",
            )


def _name(server: RedisServer) -> str:
    return "Redis" if server.need == Need.REDIS else "The broker's Redis"


def _of_each(look: Look, facts: Facts) -> Iterator[Problem]:
    """Look at each server: Redis, and the broker if it is a server of its own."""
    for server in facts.redis_servers:
        try:
            yield from look(facts, server)
        except QueueUnavailable:
            if server is facts.redis:
                raise  # the broker's absence is a problem of its own


def _broker_reachable(facts: Facts) -> Iterator[Problem]:
    """Look at the broker if it is a server of its own; else redis.reachable has looked at it."""
    if facts.broker is None:
        yield from rabbitmq.reachable()
    elif facts.broker is not facts.redis:
        yield from reachable(facts, facts.broker)


def _redis_reachable(facts: Facts) -> Iterator[Problem]:
    yield from reachable(facts, facts.redis)


CHECKS = (
    Check("redis.reachable", "Redis answers, and lets this program in", _redis_reachable, (), Need.REDIS),
    Check("broker.reachable", "the broker answers, and lets this program in", _broker_reachable, (), Need.BROKER),
    Check("redis.primary", "Redis takes writes", partial(_of_each, primary), (Need.REDIS,)),
    Check("redis.version", "Redis is 6.2 or newer, or Valkey", partial(_of_each, version), (Need.REDIS,)),
    Check("redis.eviction", "Redis evicts no keys", partial(_of_each, eviction), (Need.REDIS,)),
    Check(
        "redis.persistence", "Redis keeps its keys over a restart", partial(_of_each, persistence), (Need.REDIS,)
    ),
    Check("redis.memory", "Redis has memory left", partial(_of_each, memory), (Need.REDIS,)),
    Check("redis.keys", "no other program uses our keys", key_types, (Need.REDIS,)),
)
