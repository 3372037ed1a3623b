"""Checks of the rights: what PostgreSQL, Redis and the broker must let this program do. deploy/attach/ gives
these alone.

Each command is tried. At the broker it is put into a transaction that is never run: Redis refuses a command there
for want of a right, and the transaction ends with the connection. The queue's Redis gives no right to them. So
there harmless commands are run, most of them in a script, as by the queue. Subscriptions are not tried, because
they are no commands of a transaction.
"""

from collections.abc import Iterator
from importlib.resources import files
from typing import Any

from django.core.checks import CheckMessage, Error
from redis.exceptions import NoPermissionError, ResponseError

from harbor_refresh.attach.facts import AttachFacts
from harbor_refresh.redis_transport import NO_LIST
from harbor_refresh.tasks.broker.celery_queues import WORK
from harbor_refresh.tasks.checks.facts import Facts
from harbor_refresh.tasks.checks.registry import Need, Shown, check
from harbor_refresh.tasks.queue.keys import HARBORS_PATTERN, HARBORS_SET

#: What the words of the commands below stand for. SCRATCH is a key of ours, and no command leaves anything there.
WORDS = {
    "MARKS": HARBORS_SET,
    "PATTERN": HARBORS_PATTERN,
    "WORK": WORK,
    "NO_LIST": NO_LIST,
    "SHA": "0" * 40,
}
#: Of the queue's Redis, beside the commands in scripts.
DIRECT = """
INFO server; TIME; TYPE MARKS; SCARD MARKS; SCAN 0 MATCH PATTERN COUNT 1; DBSIZE;
UNLINK SCRATCH
"""
#: In a script. After a refusal of SREM nothing is added to Harbor's set, nor to our key after one of DEL.
IN_A_SCRIPT = """
TIME; EXISTS MARKS; SCARD MARKS; SISMEMBER MARKS -; SMISMEMBER MARKS -; SSCAN MARKS 0 COUNT 1; SPOP MARKS 0;
SREM MARKS -; SADD MARKS -; SREM MARKS -;
DEL SCRATCH; SET SCRATCH 1 PX 1000; INCRBY SCRATCH 1; GET SCRATCH; MGET SCRATCH; MSET SCRATCH 1;
PEXPIRE SCRATCH 1000; PTTL SCRATCH;
DEL SCRATCH; HSET SCRATCH a 1; HGET SCRATCH a; HMGET SCRATCH a;
HLEN SCRATCH; HDEL SCRATCH a;
DEL SCRATCH; ZADD SCRATCH 1 a; ZCARD SCRATCH; ZCOUNT SCRATCH 0 1; ZRANGE SCRATCH 0 0;
ZRANGEBYSCORE SCRATCH 0 1; ZREVRANGE SCRATCH 0 0; ZSCORE SCRATCH a; ZREMRANGEBYRANK SCRATCH 1 1;
ZREMRANGEBYSCORE SCRATCH 2 3; ZREM SCRATCH a; DEL SCRATCH
"""
#: Of Celery and of recovery, at the broker. After MULTI none of them is run.
OF_BROKER = """
WATCH WORK; UNWATCH; EXEC; MULTI; INFO server; TIME; GET unacked_mutex; SET unacked_mutex -; LLEN WORK;
LPUSH WORK -; LPUSHX NO_LIST -; RPUSH WORK -; RPOP WORK; BRPOP WORK 1; DEL WORK; EXISTS WORK; EXPIRE WORK 1;
PEXPIRE WORK 1; SADD _kombu.binding.celery -; SREM _kombu.binding.celery -; SMEMBERS _kombu.binding.celery;
HSET unacked a -; HGET unacked a; HDEL unacked a; ZADD unacked_index 0 a; ZREM unacked_index a;
ZRANGE unacked_index 0 0; ZRANGEBYSCORE unacked_index 0 0; ZREVRANGEBYSCORE unacked_index 0 0;
LLEN a.reply.celery.pidbox; LLEN celeryev.a; PUBLISH /0.celery.pidbox -; EVALSHA SHA 0; SCRIPT LOAD -;
SCRIPT EXISTS SHA
"""


def _commands(text: str, **words: str) -> list[list[str]]:
    known = WORDS | words
    return [[known.get(word, word) for word in command.split()] for command in text.split(";")]


@check("attach.rights", "the role has the rights that a refresh needs", Need.DATABASE, shown=(Shown.ATTACH,))
def of_the_database(facts: AttachFacts) -> Iterator[CheckMessage]:
    for right in facts.missing_rights:
        kind, _, name = (right.thing or "").partition(" ")
        what = f"on the {kind.lower()} {name}" if kind else "to see the transactions of Harbor's cores"
        yield Error(
            f"The role {right.role} lacks the right {right.name} {what}.",
            f"{right.grant} (all of them: deploy/attach/rights.sql)",
        )


@check("attach.redis_rights", "Redis gives this program the rights it needs", Need.REDIS, shown=(Shown.ATTACH,))
def of_redis(facts: Facts) -> Iterator[CheckMessage]:
    """Name each command that Redis refuses. A command that comes in a script is tried in one."""
    scratch = f"{facts.conf.key_prefix}attach-check"
    with facts.redis.asked() as client:
        for command in _commands(DIRECT, SCRATCH=scratch):
            try:
                client.execute_command(*command)
            except NoPermissionError as exc:
                yield lacking(command[0], str(exc))
        source = files(__package__).joinpath("lua", "probe-2.lua").read_text(encoding="utf-8")
        words = [" ".join(command) for command in _commands(IN_A_SCRIPT, SCRATCH=scratch)]
        try:
            refused = client.evalsha(client.script_load(source), 2, HARBORS_SET, scratch, *words)
        except NoPermissionError as exc:
            yield lacking("EVALSHA", str(exc))
            return
    for name, said in zip(refused[::2], refused[1::2], strict=True):
        yield lacking(name.decode(), said.decode(errors="replace"))


@check(
    "attach.broker_rights",
    "the broker gives Celery the rights it needs",
    Need.REDIS,
    Need.BROKER,
    shown=(Shown.ATTACH,),
)
def of_the_broker(facts: Facts) -> Iterator[CheckMessage]:
    broker = facts.broker
    if broker is None:
        return
    with broker.asked() as client:
        pool: Any = client.connection_pool
        connection = pool.get_connection()
        try:
            for command in _commands(OF_BROKER):
                if said := _refusal(connection, command):
                    words = " ".join(command[:2])
                    yield lacking(words, said, "The broker's Redis", broker.variable, "broker.acl")
                    if command == ["MULTI"]:
                        return  # the others would be run
        finally:
            connection.disconnect()
            pool.release(connection)


def _refusal(connection: Any, command: list[str]) -> str:
    connection.send_command(*command, check_health=False)
    try:
        connection.read_response()
    except NoPermissionError as exc:
        return str(exc)
    except ResponseError as exc:
        if command != ["EXEC"]:
            raise
        if "NOPERM" in str(exc):  # else there is no transaction yet
            return str(exc)
    return ""


def lacking(
    command: str, said: str, server: str = "Redis", variable: str = "REDIS_URL", file: str = "redis.acl"
) -> CheckMessage:
    return Error(
        f"{server} refuses {command}: {said.splitlines()[0][:200] if said else 'no reason given'}",
        f"Give the user of {variable} the rights of deploy/attach/{file}: redis-cli ACL SETUSER …",
    )
