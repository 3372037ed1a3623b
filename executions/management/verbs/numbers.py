"""Numbers as arguments, and ids in an answer."""

from argparse import ArgumentTypeError
from collections.abc import Sequence

from executions.status import MAX_ID

SHOWN = 20


def at_least_one(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= MAX_ID:
        raise ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)


def some(ids: Sequence[int]) -> str:
    more = len(ids) - SHOWN
    return ", ".join(map(str, ids[:SHOWN])) + (f" and {more:,} more" if more > 0 else "")
