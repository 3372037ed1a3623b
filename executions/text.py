"""What PostgreSQL and Redis can store as text, and as JSON."""

import json
import re
from typing import Any

#: As JSON writes it; not the word that a text may have for it, where the backslash is one of a pair.
NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


#: Python's pickle, on the way to a worker's child, breaks at some 500.
MAX_DEPTH = 100


def storable(value: Any) -> bool:
    """Text without NUL and without half a surrogate pair, which JSON can bring and UTF-8 cannot say."""
    try:
        return isinstance(value, str) and b"\x00" not in value.encode()
    except UnicodeEncodeError:
        return False


def made_storable(text: str) -> str:
    """The same, with a question mark for what cannot be stored."""
    return text.encode("utf-8", "replace").decode().replace("\x00", "?")


def json_text(value: Any) -> str:
    """As JSON that can be stored, and passed on: what is nested without an end breaks whoever copies it.
    ValueError or TypeError, with what is wrong, if it cannot be."""
    _refuse_depth(value, MAX_DEPTH)
    text = json.dumps(value, allow_nan=False, ensure_ascii=False)
    text.encode()
    if NUL.search(text):
        raise ValueError("text with NUL, which PostgreSQL cannot store")
    return text


def _refuse_depth(value: Any, left: int) -> None:
    if isinstance(value, dict | list | tuple):
        if not left:
            raise ValueError(f"more than {MAX_DEPTH} levels, one in the other")
        for one in value.values() if isinstance(value, dict) else value:
            _refuse_depth(one, left - 1)
