"""Marks as Harbor 2.8 to 2.15 keeps them: a key for each execution, of tasks/queue/legacy_keys.py.

The keys do not have our prefix, because Harbor writes them too. There is no index, so to list or count them one
must SCAN all keys of the server. A mark is written as Harbor writes it; the key of the seeds, without `cache:`, is
read and removed as well.
"""

from collections.abc import Iterable, Iterator
from typing import cast

from harbor_refresh.tasks.queue.connection import patient, redis_errors_translated
from harbor_refresh.tasks.queue.legacy_keys import PATTERN, keys_of
from harbor_refresh.tasks.queue.sets import pages

#: Keys of the server that one SCAN looks at, as in Harbor since June 2023.
SCAN_COUNT = 1_000


def key(member: str) -> str:
    return keys_of(member)[0]


def add(members: Iterable[str]) -> None:
    """Send one SET for each member. A key may be set twice, so a page without an answer is sent again whole."""
    for page in pages(members):
        with redis_errors_translated(), patient().pipeline(transaction=False) as pipe:
            for member in page:
                pipe.set(key(member), "")
            pipe.execute()


def remove(member: str) -> None:
    with redis_errors_translated():
        patient().delete(*keys_of(member))


def missing(members: Iterable[str]) -> Iterator[str]:
    """Return the members that have no key."""
    for page in pages(members):
        with redis_errors_translated(), patient().pipeline(transaction=False) as pipe:
            for member in page:
                pipe.exists(*keys_of(member))
            there = pipe.execute()
        yield from (member for member, is_there in zip(page, there, strict=True) if not is_there)


def scan() -> Iterator[bytes]:
    """Return every key of the pattern. A key may come twice. A key that is set or deleted meanwhile may be seen or
    not."""
    cursor = 0
    while True:
        with redis_errors_translated():
            found = patient().scan(cursor, match=PATTERN, count=SCAN_COUNT)
            cursor, page = cast("tuple[int, list[bytes]]", found)
        yield from page
        if not cursor:
            return
