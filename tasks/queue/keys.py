"""The catalogue of keys. All share one prefix, which may carry a hash tag for Redis Cluster.

Attached to a running Harbor, the queue is the set of Harbor's cores, and the other keys are ours.

| key            | type   | holds                                                   | bounded by                 |
| -------------- | ------ | ------------------------------------------------------- | -------------------------- |
| `queue:v2`     | set    | `ID:VENDOR`, executions whose status may be out of date | the executions there are   |
| `processing`   | set    | `ID:VENDOR:NODE:TIMESTAMP`, claimed and not finished    | live nodes x share         |
| `attempts`     | hash   | `ID:VENDOR` → how often it failed                       | queue and processing       |
| `nodes`        | zset   | live nodes by their last heartbeat                      | live nodes                 |
| `wake`         | string | a tick was sent or ran a moment ago                     | one, expires               |
| `pause`        | string | exists while the database is away                       | one, expires               |
| `stamp`        | string | the last stamp issued                                   | one                        |
| `cursor`       | string | where the last claim stopped scanning the queue         | one                        |
| `heat`         | hash   | `ID:VENDOR` → how long it rests, and since when         | 1,000, expires             |
| `marks`        | hash   | `ID:VENDOR` → how often it was marked while it waited   | 1,000, expires             |
| `lock`         | string | the token of the worker in a cycle (`lock` design only) | one, expires               |
| `waiting`      | zset   | `ID:VENDOR` by when it was put on the queue             | 1,000 of the queue         |
| `ticked`       | string | when a tick last looked for work                        | one                        |
| `left`         | zset   | nodes that stopped by themselves, by when they did      | 1,000                      |
| `dead`         | zset   | nodes that fell silent, by their last heartbeat         | 100                        |
| `presence`     | hash   | since when heartbeats come without a gap; the server    | one, of three fields       |
| `traces`       | hash   | `ID:VENDOR` → trace contexts of its latest reports      | 500 of 4 each, expires     |
| `broker`       | string | since when the broker has kept its messages             | one                        |
| `instances`    | zset   | `ID:NODE` by its last heartbeat (`hash` design only)    | live workers, expires      |
| `legacy`       | hash   | how far ticks have looked for Harbor's own marks        | one, of three fields       |

The marks that Harbor itself writes have no prefix, no expiry and no index:

| Harbor          | key                                                                    | type   |
| --------------- | ---------------------------------------------------------------------- | ------ |
| 2.8 to 2.15     | `cache:execution:id:ID:vendor:VENDOR:status_outdate`, one an execution | string |
| the same, seeds | `execution:id:ID:vendor:VENDOR:status_outdate`                         | string |
| its main branch | `execution:status_outdate`, of `ID:VENDOR`                             | set    |
"""

import re
from typing import TYPE_CHECKING

from harbor_refresh.executions.attached.attachment import is_attached
from harbor_refresh.tasks.queue import members

#: The type of each key. A key of another type is not ours (`ExecutionQueue.drop_foreign_keys`).
KINDS = {
    name: kind
    for kind, names in {
        "set": "queue processing",
        "hash": "attempts heat marks presence traces legacy",
        "zset": "nodes waiting left dead instances",
        "string": "wake pause stamp cursor lock ticked broker",
    }.items()
    for name in names.split()
}
#: Keys that stop something for as long as they exist.
EXPIRING = frozenset({"wake", "pause", "lock"})
#: The set in which the cores of a running Harbor mark executions, and from which they take them, without a prefix.
HARBORS_SET = "execution:status_outdate"
#: Harbor's keys, for SCAN.
HARBORS_PATTERN = "*execution:id:*:vendor:*:status_outdate"
#: What Harbor writes, and its seeds, with the id and the vendor. Redis's Lua fills them in as well.
HARBORS_KEY = "cache:execution:id:%s:vendor:%s:status_outdate"
SEEDS_KEY = HARBORS_KEY.removeprefix("cache:")
_READ = re.compile(rb"(?:cache:)?execution:id:([^:]+):vendor:([^:]+):status_outdate", re.DOTALL)


def queue_key(prefix: str) -> str:
    """Return the key of the queue: Harbor's own set if we are attached to it, so that Harbor's marks are on it."""
    return HARBORS_SET if is_attached() else prefix + "queue:v2"


class Keys:
    """The names of the keys of `KINDS`, as attributes."""

    def __init__(self, prefix: str) -> None:
        vars(self).update({name: prefix + name for name in KINDS}, queue=queue_key(prefix))

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> str: ...

    def named(self, *names: str) -> list[str]:
        """Return these keys in the order that a script takes them."""
        return [getattr(self, name) for name in names]


def harbors_keys(member: str) -> tuple[str, str]:
    """Return Harbor's keys of a member: the one that it writes, and the one of the seeds."""
    number, _, vendor = member.partition(":")
    return HARBORS_KEY % (number, vendor), SEEDS_KEY % (number, vendor)


def member_of_harbors(key: bytes) -> str | None:
    """Return the member `ID:VENDOR` of a key of Harbor; None if it cannot be read."""
    match = _READ.fullmatch(key)
    return members.readable(match[1] + b":" + match[2]) if match else None
