"""Read a set of any size, or all keys, in pages; and which members are missing from a set."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar, cast

from redis import Redis

T = TypeVar("T")

#: Members in one command. Larger pages need fewer commands, smaller ones block other clients for less time. Redis
#: runs one command at a time, so none may take longer than a few milliseconds, even with 1,000,000 members queued.
PAGE = 1_500


def pages(items: Iterable[T], size: int = PAGE) -> Iterator[list[T]]:
    iterator = iter(items)
    while page := list(islice(iterator, size)):
        yield page


def scan(page_at: Callable[[int], Any]) -> Iterator[Sequence[bytes]]:
    """Yield what SCAN or SSCAN find, in pages; `page_at` reads the one at a cursor. A member that is there all the
    time is seen, perhaps twice."""
    cursor = 0
    while True:
        cursor, page = page_at(cursor)
        if page:
            yield page
        if not cursor:
            return


def missing(redis: Redis, key: str, members: Iterable[str]) -> Iterator[str]:
    """Yield the members that are not in the set."""
    for page in pages(members):
        there = cast("list[int]", redis.smismember(key, page))
        yield from (member for member, is_there in zip(page, there, strict=True) if not is_there)
