"""The set `queue:v2` without claims, for `hash` and `upstream`: plain SADD, SSCAN, SREM and SPOP."""

from collections.abc import Iterable, Iterator, Sequence
from typing import cast

from harbor_refresh.tasks.conf import refresh_settings
from harbor_refresh.tasks.queue import sets
from harbor_refresh.tasks.queue.connection import patient, redis_errors_translated, single
from harbor_refresh.tasks.queue.keys import Keys
from harbor_refresh.tasks.queue.sets import PAGE, pages


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
    """Remove some members and return them. It is sent only once: if the answer is lost, so are the members."""
    with redis_errors_translated():
        return cast("list[bytes]", single().spop(_key(), count)) or []


def size() -> int:
    with redis_errors_translated():
        return patient().scard(_key())


def missing(members: Iterable[str]) -> Iterator[str]:
    return sets.missing(patient(), _key(), members)


def scan() -> Iterator[Sequence[bytes]]:
    return sets.scan(patient(), _key(), PAGE)
