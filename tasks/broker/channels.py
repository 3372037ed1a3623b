"""What this process asks of the broker over kombu's channels: those of Celery's pool of connections send its
messages and count the messages of queues, and a separate one looks for a page and gives up soon.

A count is of every priority, and without the messages that a worker has fetched.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from amqp import Message
from amqp.exceptions import AccessRefused, AMQPError, MessageNacked, NotAllowed
from celery import current_app
from kombu.exceptions import ChannelError, OperationalError

from harbor_refresh.executions.errors import QueueRefused, QueueUnavailable
from harbor_refresh.tasks.broker.connecting import is_amqp
from harbor_refresh.tasks.broker.redis_address import read_address
from harbor_refresh.tasks.conf import refresh_settings
from harbor_refresh.tasks.queue.connection import BRIEF_SECONDS, NOT_ADMITTED

#: How the address of a broker begins whose messages kombu counts in a moment.
COUNTED = ("amqp", "pyamqp", "redis", "sentinel")
#: What the 404 of a queue that does not exist says. That of a queue whose node of a cluster is down is a 404, too.
NO_QUEUE = "no queue"
#: What a broker of either kind raises if it is down, besides the errors that its transport names.
DOWN = (OperationalError, OSError, AMQPError, MessageNacked)


def is_rabbitmq() -> bool:
    return is_amqp(str(current_app.conf.broker_write_url or ""))


def is_counted() -> bool:
    """Whether the messages of this broker can be counted quickly."""
    return str(current_app.conf.broker_write_url).startswith(COUNTED)


def kind() -> str:
    """Name the kind of the broker: RabbitMQ, Redis, or the scheme of its address."""
    scheme = str(current_app.conf.broker_write_url or "amqp").partition(":")[0]
    return "RabbitMQ" if is_rabbitmq() or scheme == "amqp" else "Redis" if is_counted() else scheme


def is_the_same_server() -> bool:
    """Whether the broker is on the server of the queue's Redis. Behind Sentinel, the first Sentinel tells."""
    broker = urlsplit(str(current_app.conf.broker_write_url or "").partition(";")[0])
    queue = read_address(refresh_settings().redis_url).places[0]
    is_there = kind() == "Redis" and broker.hostname == queue.host.lower()
    return is_there and (broker.port or 6379) == queue.port


@contextmanager
def batch_producer() -> Iterator[Any]:
    """Yield a producer that sends all its messages in one batch. Before 5.7, kombu sends each by itself."""
    with current_app.producer_or_acquire() as producer, getattr(producer, "batch", nullcontext)():
        yield producer


def waiting(queue: str) -> int:
    """Count the messages without a priority. With Redis this is one LLEN, where kombu's own way takes seven
    commands."""
    with current_app.pool.acquire(block=True) as acquired:
        connection: Any = acquired  # the stubs take it for a producer
        channel = connection.default_channel
        is_redis = connection.transport.driver_type == "redis"
        return int(channel.client.llen(queue)) if is_redis else length(channel, queue)


def messages(queues: Sequence[str]) -> dict[str, int]:
    """Count the messages of these queues, soon. Raises QueueUnavailable."""
    if not is_counted():
        raise QueueUnavailable("the broker is no Redis and no RabbitMQ, so its messages are not counted")
    with glance(BRIEF_SECONDS) as channel:
        return {queue: length(channel, queue) for queue in queues}


def length(channel: Any, queue: str) -> int:
    """Count the messages that wait in a queue; 0 if there is no such queue."""
    try:
        return int(channel.queue_declare(queue, passive=True).message_count)
    except ChannelError as exc:  # a RabbitMQ has closed the channel, and the client has opened it again
        if NO_QUEUE in str(exc):
            return 0
        raise


@contextmanager
def glance(seconds: float) -> Iterator[Any]:
    """Yield a channel of a separate connection, which asks each server of the address once and gives up soon.
    Raises QueueUnavailable, or QueueRefused if the server does not let this program in."""
    limits = ("read_timeout", "write_timeout", "socket_timeout", "socket_connect_timeout")
    options: Any = dict.fromkeys(limits, seconds)
    connection: Any = current_app.connection_for_write(connect_timeout=seconds, transport_options=options)
    try:
        # kombu's own options of the transport would have it try for longer; behind Sentinels, each try asks all
        connection.ensure_connection(
            max_retries=max(0, len(connection.alt) - 1) if is_rabbitmq() else 0,
            interval_start=0,
            interval_step=0,
            reraise_as_library_errors=False,
        )
        yield connection.default_channel
        connection.release()
    except (*DOWN, *connection.connection_errors, *connection.channel_errors) as exc:
        said = str(exc) or type(exc).__name__
        is_refused = isinstance(exc, (AccessRefused, NotAllowed, *NOT_ADMITTED))
        raise (QueueRefused if is_refused else QueueUnavailable)(f"{kind()}: {said}") from exc
    finally:
        connection.collect()


def try_rights(channel: Any) -> None:
    """Make a queue, send a message to it, read it, and delete the queue. No other connection sees it, and it goes
    with this one."""
    name = channel.queue_declare(f"harbor_refresh.trial.{uuid4()}", exclusive=True).queue
    channel.basic_publish_confirm(Message(b""), routing_key=name)
    channel.basic_get(name, no_ack=True)
    channel.queue_delete(name)
