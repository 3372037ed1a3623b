"""Ages as arguments of commands."""

import re
from argparse import ArgumentTypeError
from datetime import timedelta

UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
LONGEST_DAYS = 36_500


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
