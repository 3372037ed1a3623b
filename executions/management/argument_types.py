"""The types of arguments that commands share."""

import re
from argparse import ArgumentTypeError
from datetime import timedelta

from harbor_refresh.executions.status import MAX_ID, MAX_VENDOR
from harbor_refresh.executions.text import is_text

UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
LONGEST_DAYS = 36_500


def positive_integer(text: str) -> int:
    if not text.isdecimal() or len(text) > len(str(MAX_ID)) or not 0 < int(text) <= MAX_ID:
        raise ArgumentTypeError(f"{text[:40]!r} is not a whole number from 1 to {MAX_ID}")
    return int(text)


def seconds(text: str) -> float:
    try:
        given = float(text)
    except ValueError:
        given = 0.0
    if not 0.1 <= given <= 3_600:
        raise ArgumentTypeError(f"{text[:40]!r} is not a number of seconds from 0.1 to 3,600")
    return given


def vendor_type(text: str) -> str:
    if not is_text(text, MAX_VENDOR, at_least=1):
        raise ArgumentTypeError(f"got {text[:40]!r}, takes a vendor type")
    return text


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
