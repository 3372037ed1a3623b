"""Whether this process can send webhooks: what it needs for that comes with the extra `http`."""

import _thread
from functools import cache
from importlib.util import find_spec
from types import BuiltinFunctionType

NEEDED = ("httpcore2", "standardwebhooks")


@cache
def is_installed() -> bool:
    return all(find_spec(name) for name in NEEDED)


def has_green_threads() -> bool:
    """Whether threads are greenlets (gevent). While the event loop of the sender waits, every other greenlet would
    seem to run inside it, and Django would refuse it the database."""
    return not isinstance(_thread.start_new_thread, BuiltinFunctionType)


def can_send() -> bool:
    return is_installed() and not has_green_threads()
