"""The types of arguments that commands share."""

import re
from argparse import ArgumentTypeError
from collections.abc import Callable
from datetime import timedelta

from harbor_refresh.executions.status import MAX_ID

UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
LONGEST_DAYS = 36_500


def count(at_least: int, at_most: int) -> Callable[[str], int]:
    def whole_number(text: str) -> int:
        number = int(text) if text.isdecimal() and len(text) <= len(str(MAX_ID)) else -1
        if not at_least <= number <= at_most:
            raise ArgumentTypeError(f"got {text[:40]!r}, takes a whole number from {at_least:,} to {at_most:,}")
        return number

    return whole_number


positive_integer = count(1, MAX_ID)


def age(text: str) -> timedelta:
    """Read an age such as `30d`: a whole number and s, m, h, d or w."""
    found = re.fullmatch(r"([1-9]\d{0,9})([smhdw])", text.strip())
    try:
        given = timedelta(**{UNITS[found[2]]: int(found[1])}) if found else None
    except OverflowError:
        given = None
    if given is None or given.days > LONGEST_DAYS:
        raise ArgumentTypeError(f"got {text[:40]!r}, takes an age such as 12h, 30d or 8w, of 36,500 days at most")
    return given
