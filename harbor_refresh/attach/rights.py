"""Checks of the rights: what PostgreSQL and Redis must let this program do. deploy/attach/ gives these alone."""

from collections.abc import Iterator
from importlib.resources import files
from typing import TYPE_CHECKING, cast

from redis.exceptions import NoPermissionError

from harbor_refresh.doctor.check import Check, Problem
from harbor_refresh.doctor.facts import Facts, Need
from harbor_refresh.tasks.queue.keys import HARBORS_SET
from harbor_refresh.tasks.queue.legacy_keys import PATTERN

if TYPE_CHECKING:
    from harbor_refresh.attach.facts import AttachFacts

#: Beside the commands of the scripts. SCRATCH is a key of ours, and none of these leaves anything there.
SCRATCH = "SCRATCH"
COMMANDS: tuple[tuple[str | int, ...], ...] = (
    ("INFO", "server"),
    ("TIME",),
    ("TYPE", HARBORS_SET),
    ("SCARD", HARBORS_SET),
    ("SCAN", 0, "MATCH", PATTERN, "COUNT", 1),
    ("DBSIZE",),
    ("HGETALL", SCRATCH),
    ("HSCAN", SCRATCH, 0),
    ("UNLINK", SCRATCH),
)


def of_the_database(facts: Facts) -> Iterator[Problem]:
    for right in cast("AttachFacts", facts).missing_rights:
        what = f"on {_lower(right.thing)}" if right.thing else "to see the transactions of Harbor's cores"
        yield Problem(
            f"The role {right.role} lacks the right {right.name} {what}.",
            f"{right.grant} (all of them: deploy/attach/rights.sql)",
        )


def of_redis(facts: Facts) -> Iterator[Problem]:
    """Name each command that Redis refuses. A command that comes in a script is tried in one."""
    scratch = f"{facts.conf.key_prefix}attach-check"
    with facts.redis.asked() as client:
        for command in COMMANDS:
            try:
                client.execute_command(  # type: ignore[no-untyped-call]
                    *(scratch if word == SCRATCH else word for word in command)
                )
            except NoPermissionError as exc:
                yield lacking(str(command[0]), str(exc))
        source = files(__package__).joinpath("lua", "probe-2.lua").read_text(encoding="utf-8")
        try:
            digest = client.script_load(source)
            refused = cast("list[bytes]", client.evalsha(digest, 2, HARBORS_SET, scratch))
        except NoPermissionError as exc:
            yield lacking("EVALSHA", str(exc))
            return
    for name, said in zip(refused[::2], refused[1::2], strict=True):
        yield lacking(name.decode(), said.decode(errors="replace"))


def lacking(command: str, said: str, variable: str = "REDIS_URL", file: str = "redis.acl") -> Problem:
    server = "Redis" if variable == "REDIS_URL" else "The broker's Redis"
    return Problem(
        f"{server} refuses {command}: {said.splitlines()[0][:200] if said else 'no reason given'}",
        f"Give the user of {variable} the rights of deploy/attach/{file}: redis-cli ACL SETUSER …",
    )


def _lower(thing: str) -> str:
    kind, _, name = thing.partition(" ")
    return f"the {kind.lower()} {name}"


CHECKS = (Check("attach.rights", "the role may do what a refresh needs", of_the_database, (Need.DATABASE,)),)
OF_REDIS = (Check("attach.redis_rights", "Redis lets this program do its work", of_redis, (Need.REDIS,)),)
