"""The types of arguments that the verbs share."""

from argparse import ArgumentTypeError

from harbor_refresh.executions.status import MAX_ID
from harbor_refresh.executions.text import storable


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
    if not storable(text):
        raise ArgumentTypeError(f"{text[:40]!r} is no vendor type: it is not UTF-8, or has NUL in it")
    return text
