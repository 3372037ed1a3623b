"""What PostgreSQL and Redis can store as text, and as JSON."""

import json
import re
import reprlib
from collections.abc import Iterator, Sequence
from typing import Any

#: As JSON writes it; not the word that a text may have for it, where the backslash is one of a pair.
NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")

#: Python's pickle, on the way to a worker's child, breaks at some 500.
MAX_DEPTH = 100
#: Bytes. A job's arguments are in memory several times on their way: as a row, as a message, in two processes.
MAX_JSON = 2_000_000
MAX_SHOWN = 80


def storable(value: Any) -> bool:
    """Text without NUL and without half a surrogate pair, which JSON can bring and UTF-8 cannot say."""
    try:
        return isinstance(value, str) and b"\x00" not in value.encode()
    except UnicodeEncodeError:
        return False


def is_text(value: Any, at_most: int, at_least: int = 0) -> bool:
    """Storable text of so many characters."""
    return storable(value) and at_least <= len(value) <= at_most


def is_whole(value: Any, at_least: int, at_most: int) -> bool:
    """A whole number in this range. True and False are none."""
    return isinstance(value, int) and not isinstance(value, bool) and at_least <= value <= at_most


def made_storable(text: str) -> str:
    """The same, with a question mark for what cannot be stored."""
    return text.encode("utf-8", "replace").decode().replace("\x00", "?")


def shown(value: Any) -> str:
    """Any value, shortened, as an error names it."""
    try:
        return reprlib.repr(value)[:MAX_SHOWN]
    except Exception:  # a number of 5,000 digits, a class of the caller
        return f"a value of the type {type(value).__name__}"


def json_text(value: Any) -> str:
    """As JSON that can be stored, and passed on: what is nested without an end breaks whatever copies it.
    ValueError or TypeError, with what is wrong, if it cannot be."""
    refuse_nesting(value, at_most=MAX_JSON)
    text = json.dumps(value, allow_nan=False, ensure_ascii=False)
    size = len(text.encode())
    if size > MAX_JSON:
        raise ValueError(f"it takes {size:,} bytes")
    if NUL.search(text):
        raise ValueError("text with NUL, which PostgreSQL cannot store")
    return text


def refuse_nesting(value: Any, at_most: int | None = None) -> None:
    """ValueError for more than MAX_DEPTH levels, one in the other, or more than so many values in all. A list that
    holds itself has no end of the one or the other."""
    level, count = list(_containers([value])), 0
    for _ in range(MAX_DEPTH):
        if not level:
            return
        inner: list[Any] = []
        for one in level:
            count += len(one)
            if at_most is not None and count > at_most:
                raise ValueError(f"more than {at_most:,} values")
            inner += _containers(one.values() if isinstance(one, dict) else one)
        level = inner
    if level:
        raise ValueError(f"more than {MAX_DEPTH} levels, one in the other")


def _containers(values: Any) -> Iterator[dict[Any, Any] | Sequence[Any]]:
    return (one for one in values if isinstance(one, dict | list | tuple))


def said_by(exc: BaseException) -> str:
    name = type(exc).__name__
    try:
        return f"{name}: {exc}" if str(exc).strip() else name
    except Exception:
        return name
