"""Celery's pool of connections, over which this process sends its messages: a channel, or a producer."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from celery import current_app


@contextmanager
def pooled_channel() -> Iterator[tuple[str, Any]]:
    """Yield the kind of the broker, as kombu names its driver, and a channel."""
    with current_app.pool.acquire(block=True) as acquired:
        connection: Any = acquired  # the stubs take it for a producer
        yield connection.transport.driver_type, connection.default_channel


@contextmanager
def batch_producer() -> Iterator[Any]:
    """Yield a producer that sends all its messages in one batch. Before 5.7, kombu sends each by itself."""
    with current_app.producer_or_acquire() as producer, getattr(producer, "batch", nullcontext)():
        yield producer
