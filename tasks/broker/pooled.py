"""Celery's pool of connections, over which this process sends its messages: a producer, and the lengths of
queues. A length is without the messages that a worker has fetched. `tasks/overview/of_broker.py` counts for
pages."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from celery import current_app

from harbor_refresh.tasks.broker import rabbitmq


@contextmanager
def batch_producer() -> Iterator[Any]:
    """Yield a producer that sends all its messages in one batch. Before 5.7, kombu sends each by itself."""
    with current_app.producer_or_acquire() as producer, getattr(producer, "batch", nullcontext)():
        yield producer


def waiting(queue: str) -> int:
    """Count the messages without a priority. With Redis this is one LLEN, where a passive declaration of the
    queue, kombu's own way, takes seven commands."""
    with current_app.pool.acquire(block=True) as acquired:
        connection: Any = acquired  # the stubs take it for a producer
        channel = connection.default_channel
        match connection.transport.driver_type:
            case rabbitmq.DRIVER:
                return rabbitmq.length(channel, queue)
            case "redis":
                return int(channel.client.llen(queue))
            case _:
                return int(channel.queue_declare(queue).message_count or 0)
