"""The set `queue:v2` without claims: plain SADD, SSCAN, SREM and SPOP, for the designs that know no more."""

from collections.abc import Iterable, Iterator, Sequence
from typing import cast

from executions.conf import refresh_settings
from executions.queue.connection import patient, redis_errors_translated, single
from executions.queue.keys import Keys
from executions.queue.queue import PAGE, pages


def _key() -> str:
    return Keys(refresh_settings().key_prefix).queue


def add(members: Iterable[str]) -> None:
    for page in pages(members):
        with redis_errors_translated():
            patient().sadd(_key(), *page)


def remove(members: Iterable[str | bytes]) -> None:
    for page in pages(members):
        with redis_errors_translated():
            patient().srem(_key(), *page)


def pop(count: int) -> list[bytes]:
    """Take some out. Never sent twice: what was popped for an answer that got lost is lost with it."""
    with redis_errors_translated():
        return cast("list[bytes]", single().spop(_key(), count)) or []


def size() -> int:
    with redis_errors_translated():
        return patient().scard(_key())


def missing(members: Iterable[str]) -> Iterator[str]:
    """Those of the members that are not in the set."""
    for page in pages(members):
        with redis_errors_translated():
            there = cast("list[int]", patient().smismember(_key(), page))
        yield from (member for member, is_there in zip(page, there, strict=True) if not is_there)


def scan() -> Iterator[Sequence[bytes]]:
    """Everything in the set, in pages. Whoever is in it all the while is seen, perhaps twice."""
    cursor = 0
    while True:
        with redis_errors_translated():
            cursor, page = cast("tuple[int, list[bytes]]", patient().sscan(_key(), cursor, count=PAGE))
        if page:
            yield page
        if not cursor:
            return
