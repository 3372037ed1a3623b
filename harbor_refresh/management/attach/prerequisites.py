"""What a Harbor must have before this service is attached: checks of `manage.py attach check`, in the registry of
tasks/checks. They run before the first migration as well, so they ask for no table of ours."""

from collections.abc import Iterator
from importlib.resources import files
from typing import Any

from django.core.checks import CheckMessage, Error
from django.db import connection

from harbor_refresh.executions.attached.attachment import SCHEMA
from harbor_refresh.executions.database import Statements
from harbor_refresh.executions.errors import QueueRightMissing
from harbor_refresh.executions.models import Execution, Task
from harbor_refresh.tasks.checks.facts import Facts
from harbor_refresh.tasks.checks.registry import Server, Shown, check
from harbor_refresh.tasks.queue.keys import HARBORS_PATTERN, HARBORS_SET

run = Statements(__package__)

ATTACH = (Shown.ATTACH,)
#: What scripts of the queue use in Harbor's Redis, with an argument for each that the command needs.
COMMANDS = """
INFO server; TIME; SCAN 0 MATCH PATTERN COUNT 1; TYPE MARKS; EXISTS MARKS; SCARD MARKS; SISMEMBER MARKS a;
SMISMEMBER MARKS a; SSCAN MARKS 0; SPOP MARKS; SREM MARKS a; SADD MARKS a;
DEL OURS; SET OURS 1; GET OURS; MSET OURS 1; PEXPIRE OURS 1; PTTL OURS;
HSET OURS a 1; HGET OURS a; HMGET OURS a; HLEN OURS; HDEL OURS a; ZADD OURS 1 a; ZCARD OURS; ZCOUNT OURS 0 1;
ZRANGE OURS 0 0; ZRANGEBYSCORE OURS 0 1; ZREVRANGE OURS 0 0; ZSCORE OURS a; ZREM OURS a; ZREMRANGEBYRANK OURS 0 0;
ZREMRANGEBYSCORE OURS 0 1
"""


def missing_rights() -> list[tuple[Any, ...]]:
    """The rights that the role lacks: each as GRANT names it, what it is on, and the role."""
    return run("rights", schema=SCHEMA)


@check("attach.rights", "the role has the rights that a refresh needs", Server.DATABASE, shown=ATTACH)
def rights(facts: Facts) -> Iterator[CheckMessage]:
    for name, thing, role in missing_rights():
        kind, _, what = (thing or "").partition(" ")
        on = f"on the {kind.lower()} {what}" if thing else "to see the transactions of Harbor's cores"
        grant = f"GRANT {name}{f' ON {thing}' if thing else ''} TO {role};"
        yield Error(
            f"The role {role} lacks the right {name} {on}.", f"{grant} (all of them: deploy/attach/rights.sql)"
        )


@check("attach.columns", "Harbor's tables have all needed columns", Server.DATABASE, shown=ATTACH)
def columns(facts: Facts) -> Iterator[CheckMessage]:
    """Harbor 2.9 and newer have all columns of our models. Without the right USAGE no table is seen; the check of
    rights tells that."""
    fields = [field for model in (Execution, Task) for field in model._meta.concrete_fields]
    names = [f"{one.model._meta.db_table}.{one.column}" for one in fields]
    missing = [name for (name,) in run("columns", needed=names, types=[one.db_type(connection) for one in fields])]
    if missing and "USAGE" not in {name for name, *_ in missing_rights()}:
        yield Error(
            f"These columns are missing or have another type: {', '.join(missing)}.",
            "Attach to Harbor 2.9 or newer, and name its database in DATABASE_URL.",
        )


@check("attach.marks", "Redis is Harbor's", Server.REDIS, shown=ATTACH)
def marks(facts: Facts) -> Iterator[CheckMessage]:
    kind = facts.redis.client.type(HARBORS_SET).decode()
    if kind not in ("set", "none"):
        yield Error(
            f"The key {HARBORS_SET} is a {kind} and not a set, so this is not Harbor's Redis database.",
            "Name the database of _REDIS_URL_HARBOR, or if that is empty of _REDIS_URL_CORE, in REDIS_URL.",
        )


@check("attach.redis_rights", "Redis gives this program the rights it needs", Server.REDIS, shown=ATTACH)
def redis_rights(facts: Facts) -> Iterator[CheckMessage]:
    """Name each command that Redis would refuse in a script: one that takes marks and fails half-way would lose
    them. What Celery lacks at the broker, it names itself."""
    known = {"MARKS": HARBORS_SET, "PATTERN": HARBORS_PATTERN, "OURS": f"{facts.conf.key_prefix}attach-check"}
    commands = [" ".join(known.get(word, word) for word in command.split()) for command in COMMANDS.split(";")]
    source = files(__package__).joinpath("lua", "refused-2.lua").read_text(encoding="utf-8")
    client = facts.redis.client
    try:
        found = client.evalsha(client.script_load(source), 2, HARBORS_SET, known["OURS"], *commands)
        refused = [f"{name.decode()}: the user may not use it, or not with its keys" for name in found]
    except QueueRightMissing as exc:
        refused = [f"EVALSHA: {exc.__cause__}"]
    for what in refused:
        yield Error(
            f"Redis refuses {what}",
            "Give the user of REDIS_URL the rights of deploy/attach/redis.acl: redis-cli ACL SETUSER …",
        )
