"""Readers of the options of the simulation. A value that is not allowed is an error of one line."""

import math
from argparse import ArgumentTypeError

from harbor_refresh.tasks.queue import members

SLOWEST = 0.001


def share(text: str) -> float:
    number = _number(text)
    if not 0 <= number <= 1:
        raise ArgumentTypeError(f"got {text!r}, takes a share from 0 to 1, like 0.05")
    return number


def seconds(text: str) -> float:
    number = _number(text)
    if not 0 <= number < math.inf:
        raise ArgumentTypeError(f"got {text!r}, takes a number from 0")
    return number


def rate(text: str) -> float:
    """Read a rate. A lower rate than SLOWEST would make a thread wait for longer than it can."""
    number = _number(text)
    if number != 0 and not SLOWEST <= number < math.inf:
        raise ArgumentTypeError(f"got {text!r}, takes 0 or a number from {SLOWEST}")
    return number


def vendors(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        if members.readable(members.member(1, name).encode(errors="replace")) is None:
            raise ArgumentTypeError(f"got {name[:80]!r}, takes up to 64 characters and no colon")
    if not names:
        raise ArgumentTypeError(f"got {text!r}, takes vendor types with commas between them")
    return names


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
