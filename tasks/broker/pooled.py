"""A channel of Celery's pool of connections, over which this process also sends its messages."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from celery import current_app


@contextmanager
def pooled_channel() -> Iterator[tuple[str, Any]]:
    """Yield the kind of the broker, as kombu names its driver, and a channel."""
    with current_app.pool.acquire(block=True) as acquired:
        connection: Any = acquired  # the stubs take it for a producer
        yield connection.transport.driver_type, connection.default_channel
