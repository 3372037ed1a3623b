"""Whether this process can send webhooks: what it needs for that comes with the extra `http`."""

from functools import cache
from importlib.util import find_spec

NEEDED = ("httpcore2", "standardwebhooks")


@cache
def is_installed() -> bool:
    return all(find_spec(name) for name in NEEDED)
