"""What this process asks of the broker over kombu's channels: those of Celery's pool of connections send its
messages and count the messages of queues, and a separate one looks at RabbitMQ and gives up soon.

A count is without the messages that a worker has fetched; tasks/overview/of_broker.py counts for pages. A passive
declaration of a queue of RabbitMQ returns the count, or is 404 if there is no such queue. A queue whose node of a
cluster is down is 404 as well; only the words of the answer tell the two apart.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any
from uuid import uuid4

from amqp import Message
from amqp.exceptions import AccessRefused, AMQPError, MessageNacked, NotAllowed, NotFound
from celery import current_app
from kombu.exceptions import OperationalError

from harbor_refresh.executions.errors import QueueRefused, QueueUnavailable

#: What the 404 of a queue that does not exist says.
NO_QUEUE = "no queue"
#: What a broker of either kind raises if it is away, besides the errors that its transport names.
AWAY = (OperationalError, OSError, AMQPError, MessageNacked)


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
            case "amqp":
                return length(channel, queue)
            case "redis":
                return int(channel.client.llen(queue))
            case _:
                return int(channel.queue_declare(queue).message_count or 0)


def length(channel: Any, queue: str) -> int:
    """Count the messages that wait in a queue of RabbitMQ, of every priority; 0 if there is no such queue."""
    try:
        return int(channel.queue_declare(queue, passive=True).message_count)
    except NotFound as exc:  # the server has closed the channel, and the client has opened it again
        if NO_QUEUE in str(exc):
            return 0
        raise


@contextmanager
def glance(seconds: float) -> Iterator[Any]:
    """Yield a channel of a separate connection, which asks each server of the address once and gives up soon.
    Raises QueueUnavailable, or QueueRefused if the server does not let this program in."""
    options: Any = {"read_timeout": seconds, "write_timeout": seconds}
    connection: Any = current_app.connection_for_write(connect_timeout=seconds, transport_options=options)
    try:
        # kombu's own options of the transport would have it try for longer
        connection.ensure_connection(
            max_retries=max(0, len(connection.alt) - 1),
            interval_start=0,
            interval_step=0,
            reraise_as_library_errors=False,
        )
        yield connection.default_channel
        connection.release()
    except AWAY as exc:
        said = str(exc) or type(exc).__name__
        is_refused = isinstance(exc, AccessRefused | NotAllowed)
        raise (QueueRefused if is_refused else QueueUnavailable)(f"RabbitMQ: {said}") from exc
    finally:
        connection.collect()


def try_rights(channel: Any) -> None:
    """Make a queue, send a message to it, read it, and delete the queue. No other connection sees it, and it goes
    with this one."""
    name = channel.queue_declare(f"harbor_refresh.trial.{uuid4()}", exclusive=True).queue
    channel.basic_publish_confirm(Message(b""), routing_key=name)
    channel.basic_get(name, no_ack=True)
    channel.queue_delete(name)
