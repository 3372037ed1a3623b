"""Text: what PostgreSQL and Redis can store, also as JSON, counts, durations, and lists of ids."""

import json
import re
import reprlib
from collections.abc import Iterable, Sequence
from typing import Any

#: NUL as JSON escapes it. If the backslash is the second of a pair, the text spells the escape and has no NUL.
NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")

#: Python's pickle, which passes a job to a worker's child process, breaks at about 500 levels.
MAX_DEPTH = 100
#: In bytes. A job's arguments are in memory several times: as a row, as a message, in two processes.
MAX_JSON = 2_000_000
MAX_SHOWN = 80
CONTAINERS = (dict, list, tuple)
UNITS = ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s"))


def storable(value: Any) -> bool:
    """Whether it is text without NUL and without half a surrogate pair, which JSON can hold and UTF-8 cannot."""
    try:
        return isinstance(value, str) and b"\x00" not in value.encode()
    except UnicodeEncodeError:
        return False


def is_text(value: Any, at_most: int, at_least: int = 0) -> bool:
    """Whether it is storable text whose length is in this range."""
    return storable(value) and at_least <= len(value) <= at_most


def is_number(value: Any, at_least: float, at_most: float) -> bool:
    """Whether it is a number in this range, as NaN never is. True and False are not numbers here."""
    return isinstance(value, int | float) and not isinstance(value, bool) and at_least <= value <= at_most


def is_whole(value: Any, at_least: int, at_most: int) -> bool:
    return isinstance(value, int) and is_number(value, at_least, at_most)


def made_storable(text: str) -> str:
    """Replace each character that cannot be stored by a question mark."""
    return text.encode("utf-8", "replace").decode().replace("\x00", "?")


def shown(value: Any) -> str:
    """Shorten any value, for an error message that names it."""
    try:
        return reprlib.repr(value)[:MAX_SHOWN]
    except Exception:  # a number of 5,000 digits, a class of the caller
        return f"a value of the type {type(value).__name__}"


def plural(count: int, one: str, many: str = "") -> str:
    """The count with its noun: `1 execution`, `3,000 executions`, `2 entries`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def json_text(value: Any) -> str:
    """Write a value as JSON that can be stored and passed on; nesting is limited, because deep nesting breaks the
    code that copies the value. Raises ValueError or TypeError with what is wrong."""
    refuse_nesting(value, at_most=MAX_JSON)
    text = json.dumps(value, allow_nan=False, ensure_ascii=False)
    size = len(text.encode())
    if size > MAX_JSON:
        raise ValueError(f"it takes {size:,} bytes")
    if NUL.search(text):
        raise ValueError("text with NUL, which PostgreSQL cannot store")
    return text


def refuse_nesting(value: Any, at_most: int | None = None) -> None:
    """Raise ValueError for more than MAX_DEPTH nested levels or more than `at_most` values in all. A list that
    contains itself exceeds both limits."""
    level, count = _containers([value]), 0
    for _ in range(MAX_DEPTH):
        if not level:
            return
        count += sum(map(len, level))
        if at_most is not None and count > at_most:
            raise ValueError(f"more than {at_most:,} values")
        level = [inner for one in level for inner in _containers(one.values() if isinstance(one, dict) else one)]
    if level:
        raise ValueError(f"more than {MAX_DEPTH} levels, one in the other")


def _containers(values: Iterable[Any]) -> list[Any]:
    return [one for one in values if isinstance(one, CONTAINERS)]


def said_by(exc: BaseException) -> str:
    name = type(exc).__name__
    try:
        return f"{name}: {exc}" if str(exc).strip() else name
    except Exception:
        return name


def id_list(ids: Sequence[int], *, at_most: int) -> str:
    more = len(ids) - at_most
    return ", ".join(map(str, ids[:at_most])) + (f" and {more:,} more" if more > 0 else "")


def duration(seconds: int) -> str:
    """The duration in its two largest units: `3 d 4 h`, `2 min 5 s`."""
    for large, its_unit, small, next_unit in UNITS:
        if seconds >= large:
            first, second = seconds // large, seconds % large // small
            return f"{first} {its_unit} {second} {next_unit}" if second else f"{first} {its_unit}"
    return f"{seconds} s"


def age(seconds: float) -> str:
    """A duration as precise as it is short: `350 ms`, `2.3 s`, `42 s`, `2 min 5 s`."""
    if seconds < 0.9995:
        return f"{round(max(seconds, 0) * 1000)} ms"
    return f"{seconds:.1f} s" if seconds < 9.95 else duration(round(seconds))


def ago(seconds: float | None) -> str:
    """How long ago it was, in whole seconds, so that a page that renews itself is calm: `just now`, `42 s ago`."""
    if seconds is None:
        return "never"
    return f"{duration(round(seconds))} ago" if seconds >= 1 else "just now"
