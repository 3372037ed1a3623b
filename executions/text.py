"""What PostgreSQL and Redis can store as text."""

from typing import Any


def storable(value: Any) -> bool:
    """Text without NUL and without half a surrogate pair, which JSON can bring and UTF-8 cannot say."""
    try:
        return isinstance(value, str) and b"\x00" not in value.encode()
    except UnicodeEncodeError:
        return False
