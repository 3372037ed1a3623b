"""The arguments that are numbers."""

from argparse import ArgumentTypeError

from executions.status import MAX_ID


def at_least_one(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= MAX_ID:
        raise ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)
