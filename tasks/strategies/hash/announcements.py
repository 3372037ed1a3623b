"""Who is which instance of the hash design: `ID:NODE` in a zset, by the last sign of life.

A node here is a whole worker, named by its main process. One that is silent for REFRESH_NODE_TTL_SECONDS is
forgotten, by whoever looks next.
"""

from collections import defaultdict
from functools import cache
from typing import cast

from redis.commands.core import Script as Registered

from tasks.conf import refresh_settings
from tasks.queue.connection import patient, redis_errors_translated
from tasks.queue.keys import Keys
from tasks.queue.scripts import Script, Scripts

SCRIPTS = Scripts(__package__, {"announce": Script(("instances",))})

#: The nodes that announce a number. More than one: they do the same work twice.
Announced = dict[int, list[str]]


def announce(number: int, node: str, *, yields: bool = False) -> Announced:
    """Give a sign of life and see who else is there. One that `yields` is not announced while another live
    node has that number: of two that start at once, one gets it."""
    return _run(str(number), node, "1" if yields else "0")


def announced() -> Announced:
    """Look only."""
    return _run("", "", "0")


def withdraw(number: int, node: str) -> None:
    """For a clean end; an unclean one is noticed by its silence."""
    with redis_errors_translated():
        patient().zrem(Keys(refresh_settings().key_prefix).instances, f"{number}:{node}")


def doubled(seen: Announced) -> Announced:
    return {number: nodes for number, nodes in sorted(seen.items()) if len(nodes) > 1}


def unannounced(seen: Announced, total: int) -> list[int]:
    """The numbers nobody has: the executions that fall to them wait."""
    return [number for number in range(total) if number not in seen]


@cache
def _script() -> Registered:
    return patient().register_script(SCRIPTS.source("announce"))


def _run(*words: str) -> Announced:
    conf = refresh_settings()
    number, node, yields = words
    with redis_errors_translated():
        found = cast(
            "list[bytes]",
            _script()(
                keys=Keys(conf.key_prefix).named(*SCRIPTS["announce"].keys),
                args=[number, node, round(conf.node_ttl * 1_000_000), yields],
            ),
        )
    seen: Announced = defaultdict(list)
    for raw in found:
        digits, _, name = raw.decode(errors="replace").partition(":")
        if digits.isdecimal():  # somebody else wrote the others; they fall silent
            seen[int(digits)].append(name)
    return {one: sorted(names) for one, names in seen.items()}
