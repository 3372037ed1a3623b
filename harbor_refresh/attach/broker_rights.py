"""The check of the rights at the broker, if it is a Redis: what Celery and recovery do there (broker.acl).

Redis refuses a command for want of a right when it is put into a transaction. So each command is put into one that
is never run, and none changes anything. The connection is closed, and the transaction ends with it.

Not tried are subscriptions, because they are no commands of a transaction.
"""

from collections.abc import Iterator
from typing import Any

from redis.exceptions import NoPermissionError, ResponseError

from harbor_refresh.attach.rights import lacking
from harbor_refresh.doctor.check import Check, Problem
from harbor_refresh.doctor.facts import Facts, Need
from harbor_refresh.redis_transport import NO_LIST
from harbor_refresh.tasks.broker.mark import MARK
from harbor_refresh.tasks.celery_queues import WORK

Command = tuple[str | int, ...]

EXEC: Command = ("EXEC",)
MULTI: Command = ("MULTI",)
BINDING = "_kombu.binding.celery"
SCRIPT = "0" * 40
IN_A_TRANSACTION: tuple[Command, ...] = (
    ("INFO", "server"),
    ("TIME",),
    ("TYPE", MARK),
    ("GET", MARK),
    ("SET", MARK, ""),
    ("LLEN", WORK),
    ("LPUSH", WORK, ""),
    ("LPUSHX", NO_LIST, ""),
    ("RPUSH", WORK, ""),
    ("RPOP", WORK),
    ("BRPOP", WORK, 1),
    ("DEL", WORK),
    ("EXISTS", WORK),
    ("EXPIRE", WORK, 1),
    ("PEXPIRE", WORK, 1),
    ("SADD", BINDING, ""),
    ("SREM", BINDING, ""),
    ("SMEMBERS", BINDING),
    ("HSET", "unacked", "a", ""),
    ("HGET", "unacked", "a"),
    ("HDEL", "unacked", "a"),
    ("HLEN", "unacked"),
    ("HSCAN", "unacked", 0),
    ("ZADD", "unacked_index", 0, "a"),
    ("ZCARD", "unacked_index"),
    ("ZREM", "unacked_index", "a"),
    ("ZRANGE", "unacked_index", 0, 0),
    ("ZRANGEBYSCORE", "unacked_index", 0, 0),
    ("ZREVRANGEBYSCORE", "unacked_index", 0, 0),
    ("LLEN", "a.reply.celery.pidbox"),
    ("LLEN", "celeryev.a"),
    ("PUBLISH", "/0.celery.pidbox", ""),
    ("EVALSHA", SCRIPT, 0),
    ("SCRIPT", "LOAD", "return 1"),
    ("SCRIPT", "EXISTS", SCRIPT),
)
COMMANDS: tuple[Command, ...] = (("WATCH", WORK), ("UNWATCH",), EXEC, MULTI, *IN_A_TRANSACTION)


def of_the_broker(facts: Facts) -> Iterator[Problem]:
    """Name each command that the broker refuses."""
    broker = facts.broker
    if broker is None:
        return
    with broker.asked() as client:
        pool: Any = client.connection_pool
        connection = pool.get_connection()
        try:
            for command in COMMANDS:
                if said := _refusal(connection, command):
                    yield lacking(" ".join(map(str, command[:2])), said, broker.variable, "broker.acl")
                    if command == MULTI:
                        return  # the others would be run
        finally:
            connection.disconnect()
            pool.release(connection)


def _refusal(connection: Any, command: Command) -> str:
    connection.send_command(*command, check_health=False)
    try:
        connection.read_response()
    except NoPermissionError as exc:
        return str(exc)
    except ResponseError as exc:
        if command != EXEC:
            raise
        if "NOPERM" in str(exc):  # else there is no transaction yet
            return str(exc)
    return ""


CHECKS = (
    Check("attach.broker_rights", "the broker lets Celery do its work", of_the_broker, (Need.REDIS, Need.BROKER)),
)
