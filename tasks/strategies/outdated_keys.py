"""The legacy keys, one for each execution: `execution:id:ID:vendor:VENDOR:status_outdate`.

The original design keeps its marks in them. They do not have our prefix, because an older release wrote them.
There is no index, so to list or count them one must SCAN all keys of the server.
"""

import re
from collections.abc import Iterable, Iterator
from typing import cast

from tasks.queue import members as names
from tasks.queue.connection import patient, redis_errors_translated
from tasks.queue.sets import pages

PATTERN = "execution:id:*:vendor:*:status_outdate"
_KEY = re.compile(rb"execution:id:([^:]+):vendor:([^:]+):status_outdate", re.DOTALL)


def key(member: str) -> str:
    number, _, vendor = member.partition(":")
    return f"execution:id:{number}:vendor:{vendor}:status_outdate"


def readable(raw: bytes) -> str | None:
    """Read the member `ID:VENDOR` from a key; None if it cannot be read."""
    match = _KEY.fullmatch(raw)
    return names.readable(match[1] + b":" + match[2]) if match else None


def add(members: Iterable[str]) -> None:
    """Send one SET for each member. A key may be set twice, so a page without an answer is sent again whole."""
    for page in pages(members):
        with redis_errors_translated(), patient().pipeline(transaction=False) as pipe:
            for member in page:
                pipe.set(key(member), "")
            pipe.execute()


def remove(member: str) -> None:
    with redis_errors_translated():
        patient().delete(key(member))


def missing(members: Iterable[str]) -> Iterator[str]:
    """Return the members that have no key."""
    for page in pages(members):
        with redis_errors_translated(), patient().pipeline(transaction=False) as pipe:
            for member in page:
                pipe.exists(key(member))
            there = pipe.execute()
        yield from (member for member, is_there in zip(page, there, strict=True) if not is_there)


def scan(count: int) -> Iterator[bytes]:
    """Return every key of the pattern; Redis looks at `count` keys in one step. A key may come twice. A key
    that is set or deleted meanwhile may be seen or not."""
    cursor = 0
    while True:
        with redis_errors_translated():
            cursor, page = cast("tuple[int, list[bytes]]", patient().scan(cursor, match=PATTERN, count=count))
        yield from page
        if not cursor:
            return
