"""The legacy keys: one key an execution, `execution:id:ID:vendor:VENDOR:status_outdate`.

Where the original design keeps its marks. They do not share our prefix, for an older release wrote them. To
know which there are, or how many, one must SCAN all keys of the server; there is no index.
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
    """The member `ID:VENDOR` of a key; None if there is none to be read from it."""
    match = _KEY.fullmatch(raw)
    return names.readable(match[1] + b":" + match[2]) if match else None


def add(members: Iterable[str]) -> None:
    """One SET for each. A key may be set twice, so a page that was cut off is sent again whole."""
    for page in pages(members):
        with redis_errors_translated(), patient().pipeline(transaction=False) as pipe:
            for member in page:
                pipe.set(key(member), "")
            pipe.execute()


def remove(member: str) -> None:
    with redis_errors_translated():
        patient().delete(key(member))


def missing(members: Iterable[str]) -> Iterator[str]:
    """Those of the members that have no key."""
    for page in pages(members):
        with redis_errors_translated(), patient().pipeline(transaction=False) as pipe:
            for member in page:
                pipe.exists(key(member))
            there = pipe.execute()
        yield from (member for member, is_there in zip(page, there, strict=True) if not is_there)


def scan(count: int) -> Iterator[bytes]:
    """Every key of the pattern; `count` is how many keys Redis looks at in one step. A key may come twice,
    one that comes or goes meanwhile may be seen or not."""
    cursor = 0
    while True:
        with redis_errors_translated():
            cursor, page = cast("tuple[int, list[bytes]]", patient().scan(cursor, match=PATTERN, count=count))
        yield from page
        if not cursor:
            return
