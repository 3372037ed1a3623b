"""The marks of Harbor that Redis holds: the set of its main branch, and the keys of its releases 2.8 to 2.15."""

import re
from dataclasses import dataclass
from time import monotonic
from typing import cast

from redis import Redis

from harbor_refresh.tasks.queue.keys import HARBORS_SET
from harbor_refresh.tasks.queue.legacy_keys import PATTERN

KEY = re.compile(rb"(cache:)?execution:id:[^:]+:vendor:[^:]+:status_outdate", re.DOTALL)
#: Keys that Redis looks at in one step.
STEP = 1_000
#: Harbor's Redis may hold millions of other keys. After so long the rest is not looked at.
SECONDS = 10.0


@dataclass(frozen=True)
class Marks:
    """How many marks there are: members of the set, keys with and without `cache:` before them. `set_type` is the
    type of the key of the set, `none` if there is no such key. `is_complete`: every key was looked at."""

    set_type: str
    in_set: int
    with_cache: int
    without_cache: int
    is_complete: bool

    @property
    def total(self) -> int:
        return self.in_set + self.with_cache + self.without_cache


def count_marks(client: Redis, seconds: float = SECONDS) -> Marks:
    """Count the marks. A key that is written or deleted meanwhile may be counted or not."""
    set_type = cast("bytes", client.type(HARBORS_SET)).decode()
    in_set = int(client.scard(HARBORS_SET)) if set_type == "set" else 0
    found: dict[bool, set[bytes]] = {True: set(), False: set()}
    cursor, ends_at = 0, monotonic() + seconds
    while True:
        cursor, keys = cast("tuple[int, list[bytes]]", client.scan(cursor, match=PATTERN, count=STEP))
        for key in keys:
            if match := KEY.fullmatch(key):
                found[bool(match[1])].add(key)
        if not cursor or monotonic() > ends_at:
            break
    return Marks(set_type, in_set, len(found[True]), len(found[False]), not cursor)
