"""Connections that are not of Django's pool, if it has one.

A job in a thread holds a connection of the pool until it ends. If begins, heartbeats and ends waited for one, then
the worker would seem dead.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connection, connections


def has_pool() -> bool:
    return bool(connections[DEFAULT_DB_ALIAS].settings_dict["OPTIONS"].get("pool"))


def another() -> Any:
    """Make a connection that is not of Django's pool."""
    made = connections.create_connection(DEFAULT_DB_ALIAS)
    if has_pool():
        made.settings_dict = {**made.settings_dict, "OPTIONS": {**made.settings_dict["OPTIONS"], "pool": None}}
    return made


@contextmanager
def instead(of_django: Any) -> Iterator[None]:
    """Have this connection be Django's in this thread."""
    before, connections[DEFAULT_DB_ALIAS] = connections[DEFAULT_DB_ALIAS], of_django
    try:
        yield
    finally:
        connections[DEFAULT_DB_ALIAS] = before


@contextmanager
def beside_the_pool() -> Iterator[None]:
    """Use a connection of this thread's own if Django has a pool. The connection is closed at the end."""
    if has_pool():
        connection.close()  # of the pool, if this thread has used one: a fork must not copy it
    with instead(another()) if has_pool() else nullcontext():
        try:
            yield
        finally:
            connection.close()
