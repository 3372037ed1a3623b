"""Numbers and vendors as arguments, and ids in an answer."""

from argparse import ArgumentTypeError
from collections.abc import Sequence

from executions.status import MAX_ID
from executions.text import storable

SHOWN = 20


def at_least_one(text: str) -> int:
    if not text.isdecimal() or len(text) > len(str(MAX_ID)) or not 0 < int(text) <= MAX_ID:
        raise ArgumentTypeError(f"{text[:40]!r} is not a whole number from 1 to {MAX_ID}")
    return int(text)


def vendor(text: str) -> str:
    if not storable(text):
        raise ArgumentTypeError(f"{text[:40]!r} is no vendor type: it is not UTF-8, or has NUL in it")
    return text


def some(ids: Sequence[int]) -> str:
    more = len(ids) - SHOWN
    return ", ".join(map(str, ids[:SHOWN])) + (f" and {more:,} more" if more > 0 else "")
