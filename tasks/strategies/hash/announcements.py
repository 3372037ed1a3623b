"""The instances of the hash design: `ID:NODE` in a zset, scored by the last heartbeat.

A node here is a whole worker, named by its main process. A node that is silent for NODE_TTL_SECONDS is
removed by the next call of any node.
"""

from collections import defaultdict
from functools import cache
from typing import cast

from redis.commands.core import Script as Registered

from harbor_refresh.tasks import pacing
from harbor_refresh.tasks.conf import refresh_settings
from harbor_refresh.tasks.queue.connection import patient, redis_errors_translated
from harbor_refresh.tasks.queue.keys import Keys
from harbor_refresh.tasks.queue.scripts import Script, Scripts

SCRIPTS = Scripts(__package__, {"announce": Script(("instances",), ("id", "node", "ttl", "if_free"))})

#: The nodes that announce a number. If there are two, both do the same work.
Announced = dict[int, list[str]]


def announce(number: int, node: str, *, if_free: bool = False) -> Announced:
    """Send a heartbeat and return the live instances. With `if_free`, do not announce the node while another
    live node has that number, so that of two nodes that start at once only one gets it."""
    return _run(str(number), node, "1" if if_free else "0")


def announced() -> Announced:
    """Return the live instances, without announcing one."""
    return _run("", "", "0")


def withdraw(number: int, node: str) -> None:
    """Remove the node at its clean end. A node that dies is removed when it has been silent for long enough."""
    with redis_errors_translated():
        patient().zrem(Keys(refresh_settings().key_prefix).instances, f"{number}:{node}")


def doubled(seen: Announced) -> Announced:
    return {number: nodes for number, nodes in sorted(seen.items()) if len(nodes) > 1}


def unannounced(seen: Announced, total: int) -> list[int]:
    """List the numbers that no node announces. The executions that belong to them wait."""
    return [number for number in range(total) if number not in seen]


@cache
def _script() -> Registered:
    return patient().register_script(SCRIPTS.source("announce"))


def _run(number: str, node: str, if_free: str) -> Announced:
    conf, script = refresh_settings(), SCRIPTS["announce"]
    named = {"id": number, "node": node, "ttl": round(pacing.NODE_TTL_SECONDS * 1_000_000), "if_free": if_free}
    keys = Keys(conf.key_prefix).named(*script.keys)
    with redis_errors_translated():
        found = cast("list[bytes]", _script()(keys=keys, args=script.arguments(named, ())))
    seen: Announced = defaultdict(list)
    for raw in found:
        digits, _, name = raw.decode(errors="replace").partition(":")
        if digits.isdecimal():  # another program wrote the rest; they expire
            seen[int(digits)].append(name)
    return {one: sorted(names) for one, names in seen.items()}
