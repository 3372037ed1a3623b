"""Checks of the Redis of the queue; and whether the broker answers."""

from collections.abc import Iterator

from django.core.checks import CheckMessage, Error, Warning

from harbor_refresh.executions.attached.attachment import is_attached
from harbor_refresh.executions.errors import QueueRefused
from harbor_refresh.tasks.broker import channels
from harbor_refresh.tasks.checks.facts import Facts, place_of
from harbor_refresh.tasks.checks.registry import PRESENT, Server, Shown, check

OLDEST = (6, 2)


@check("redis.reachable", "Redis answers, and lets this program in", shown=tuple(Shown), answers_for=Server.REDIS)
def redis_reachable(facts: Facts) -> Iterator[CheckMessage]:
    if exc := facts.absence(Server.REDIS):
        yield _unreachable(
            "Redis",
            "Redis",
            "REDIS_URL",
            exc,
            "Reports are stored, but no status is refreshed until it is back. Nothing is lost: reconcile finds "
            "in the database what Redis forgot.",
        )


@check(
    "broker.reachable",
    "the broker answers, and lets this program in",
    shown=(*PRESENT, Shown.ATTACH),
    answers_for=Server.BROKER,
)
def broker_reachable(facts: Facts) -> Iterator[CheckMessage]:
    """A broker on the server of the queue's Redis is down with it, and redis.reachable finds that."""
    exc = facts.absence(Server.BROKER)
    if exc and not (channels.is_the_same_server() and facts.absence(Server.REDIS)):
        kind = channels.kind()
        name = {"RabbitMQ": kind, "Redis": "The broker's Redis"}.get(kind, f"The broker {kind}")
        meaning = "Workers get no messages, so nothing is refreshed and no job runs."
        yield _unreachable(kind, name, "CELERY_BROKER_URL", exc, meaning)


def _unreachable(kind: str, name: str, variable: str, exc: Exception, meaning: str) -> CheckMessage:
    place = place_of(variable)
    rights, look = "the rights of redis.acl or broker.acl, in deploy/attach", "redis-cli -u ADDRESS ping"
    if kind == "RabbitMQ":
        rights = "its rights: rabbitmqctl set_permissions -p VHOST USER '.*' '.*' '.*'"
        look = "rabbitmq-diagnostics check_port_connectivity"
    elif kind != "Redis":
        rights, look = "the rights to read and write its queues", "the client of that broker"
    if isinstance(exc, QueueRefused):
        todo = f"Correct the user, the password and the path in {place}, or give that user {rights}"
        return Error(f"{name} answers and refuses this program. {exc}", todo)
    todo = f"Workers reconnect by themselves. Start it, or correct {place}. Look with: {look}"
    return Error(f"{name} is down, or does not answer in time. {str(exc).rstrip('.')}.\n{meaning}", todo)


@check("redis.primary", "Redis takes writes", Server.REDIS, shown=(Shown.DOCTOR, Shown.ATTACH))
def primary(facts: Facts) -> Iterator[CheckMessage]:
    info = facts.redis.info
    if info.get("role") == "slave":
        yield Error(
            "Redis is a replica, which takes no writes.",
            f"Name its primary, {info.get('master_host')}:{info.get('master_port')}, in REDIS_URL.",
        )


@check("redis.version", "Redis is 6.2 or newer, or Valkey", Server.REDIS, shown=(Shown.DOCTOR, Shown.ATTACH))
def version(facts: Facts) -> Iterator[CheckMessage]:
    found = str(facts.redis.info.get("redis_version", ""))
    numbers = tuple(int(part) for part in found.split(".")[:2] if part.isdecimal())
    if numbers and numbers < OLDEST:
        yield Error(
            f"Redis is {found}, but the oldest supported version is 6.2.",
            "Upgrade the server, or use Valkey.",
        )


@check("redis.eviction", "Redis evicts no keys", Server.REDIS, shown=(Shown.DOCTOR, Shown.ATTACH))
def eviction(facts: Facts) -> Iterator[CheckMessage]:
    """Harbor's own Redis may, if it is not the broker: reconcile finds what it has evicted."""
    policy = str(facts.redis.info.get("maxmemory_policy", "noeviction"))
    if policy != "noeviction" and (channels.is_the_same_server() or not is_attached()):
        yield Error(
            f"Redis evicts keys when its memory is full (maxmemory-policy {policy}), and so loses messages and "
            "marks.",
            "redis-cli config set maxmemory-policy noeviction; and the same line in its configuration file.",
        )


@check("redis.persistence", "Redis keeps its keys across a restart", Server.REDIS)
def persistence(facts: Facts) -> Iterator[CheckMessage]:
    if not facts.redis.info.get("aof_enabled") and facts.redis.saves is False:
        yield Warning(
            "Redis keeps nothing across a restart. No status is lost, but reconcile needs a minute or two to find "
            "the executions that waited, and jobs are sent again later.",
            "redis-cli config set appendonly yes; and the same line in its configuration file.",
        )
