"""The catalogue of keys: each name, its type, what it holds and its bound, once. docs/reference/keys.md is made
from it. All share one prefix.

Attached to a running Harbor, the queue is the set of Harbor's cores, and the other keys are ours.

The marks that Harbor itself writes have no prefix, no expiry and no index: Harbor 2.8 to 2.15 writes a key for
each execution, and so do its seeds; its main branch has a set of `ID:VENDOR`.
"""

import re
from typing import TYPE_CHECKING, NamedTuple

from harbor_refresh.executions.attached.attachment import is_attached
from harbor_refresh.tasks.queue import members


class Key(NamedTuple):
    name: str
    kind: str
    holds: str
    bound: str


CATALOGUE = (
    Key("queue", "set", "`ID:VENDOR`: executions whose status may be out of date", "the number of executions"),
    Key("processing", "set", "`ID:VENDOR:NODE:TIMESTAMP`: claims in flight", "three chunks for each live node"),
    Key("attempts", "hash", "`ID:VENDOR` → how often its refresh has failed", "the queue and the claims"),
    Key("nodes", "zset", "live nodes by their last heartbeat", "the live nodes"),
    Key("wake", "string", "a tick was sent or ran a moment ago", "expires after 2 s"),
    Key("pause", "string", "the database is down, so no node claims", "expires within seconds"),
    Key("cursor", "string", "where the last claim stopped reading the queue", "one value"),
    Key("heat", "hash", "`ID:VENDOR` → how long a hot execution waits between refreshes", "1,000; expires"),
    Key("marks", "hash", "`ID:VENDOR` → how often it was marked while it waited", "1,000; expires after 10 s"),
    Key("waiting", "zset", "`ID:VENDOR` by the time at which it was queued", "1,000 members of the queue"),
    Key("ticked", "string", "when a tick last looked for work", "one value"),
    Key("left", "zset", "nodes that shut down cleanly, by the time of the shutdown", "1,000"),
    Key("dead", "zset", "nodes that died, by their last heartbeat", "the latest 100"),
    Key("lock", "string", "strategy `lock`: the process that runs a cycle", "one value; expires"),
    Key("presence", "hash", "since when heartbeats have had no gap, and which server got them", "three fields"),
    Key("legacy_cursor", "string", "where the last scan for Harbor's own marks stopped", "one value"),
    Key("legacy_rest", "string", "no tick scans for Harbor's own marks", "expires within 10 s"),
)
#: The type of each key.
KINDS = {one.name: one.kind for one in CATALOGUE}
#: The set in which the cores of a running Harbor mark executions, and from which they take them, without a prefix.
HARBORS_SET = "execution:status_outdate"
#: Harbor's keys, for SCAN.
HARBORS_PATTERN = "*execution:id:*:vendor:*:status_outdate"
#: What Harbor writes, and its seeds, with the id and the vendor.
HARBORS_KEY = "cache:execution:id:%s:vendor:%s:status_outdate"
SEEDS_KEY = HARBORS_KEY.removeprefix("cache:")
_READ = re.compile(rb"(?:cache:)?execution:id:([^:]+):vendor:([^:]+):status_outdate", re.DOTALL)


def queue_key(prefix: str) -> str:
    """Harbor's own set if we are attached to it, so that Harbor's marks are on the queue."""
    return HARBORS_SET if is_attached() else prefix + "queue:v2"


class Keys:
    """The names of the keys of `KINDS`, as attributes."""

    def __init__(self, prefix: str) -> None:
        vars(self).update({name: prefix + name for name in KINDS}, queue=queue_key(prefix))

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> str: ...


def harbors_keys(member: str) -> tuple[str, str]:
    """Return the key that Harbor writes, and the one of its seeds."""
    number, _, vendor = member.partition(":")
    return HARBORS_KEY % (number, vendor), SEEDS_KEY % (number, vendor)


def member_of_harbors(key: bytes) -> str | None:
    """Return the member `ID:VENDOR` of a key of Harbor; None if it cannot be read."""
    match = _READ.fullmatch(key)
    return members.readable(match[1] + b":" + match[2]) if match else None
