"""What is sent to RabbitMQ itself, besides the messages of Celery, and what its errors mean.

A passive declaration of a queue returns the count of its messages, or is 404 if there is no such queue. It also
renews the time after which an unused queue expires. A queue whose node of a cluster is down is 404 as well; only
the words of the answer tell the two apart.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from amqp import Message
from amqp.exceptions import AccessRefused, AMQPError, MessageNacked, NotAllowed, NotFound
from celery import current_app
from kombu.exceptions import OperationalError

from harbor_refresh.executions.errors import QueueRefused, QueueUnavailable

DRIVER = "amqp"
#: What the 404 of a queue that does not exist says.
NO_QUEUE = "no queue"
#: How the name of a queue begins that lasts for a look at our rights.
TRIAL = "harbor_refresh.trial"
#: What a broker of either kind raises if it is away, besides the errors that its transport names.
AWAY = (OperationalError, OSError, AMQPError, MessageNacked)


def length(channel: Any, queue: str) -> int:
    """Count the messages that wait in the queue, of every priority; 0 if there is no such queue."""
    return _count(channel, queue) or 0


def has_queue(channel: Any, queue: str) -> bool:
    return _count(channel, queue) is not None


def _count(channel: Any, queue: str) -> int | None:
    try:
        return int(channel.queue_declare(queue, passive=True).message_count)
    except NotFound as exc:  # the server has closed the channel, and the client has opened it again
        if NO_QUEUE in str(exc):
            return None
        raise


class Glance:
    """A connection for looks that many pages share: it gives up soon and never tries again. It stays open, because
    to open one takes longer than the look, and one thread at a time uses it. If it fails, the next look opens
    another."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._connection: Any = None

    def lengths(self, queues: Sequence[str]) -> dict[str, int]:
        """Raises QueueUnavailable, or QueueRefused if the server does not let this program in."""
        with self._channel() as channel:
            return {queue: length(channel, queue) for queue in queues}

    def try_rights(self) -> None:
        """Make a queue, send a message to it, read it, and delete the queue. No other connection sees it, and it
        goes with this one. Raises QueueUnavailable, or QueueRefused if a right is missing."""
        with self._channel() as channel:
            name = channel.queue_declare(f"{TRIAL}.{uuid4()}", exclusive=True).queue
            channel.basic_publish_confirm(Message(b""), routing_key=name)
            channel.basic_get(name, no_ack=True)
            channel.queue_delete(name)

    @contextmanager
    def _channel(self) -> Iterator[Any]:
        if not self._lock.acquire(timeout=2 * self._seconds):
            raise QueueUnavailable("RabbitMQ: others wait for its answer already")
        try:
            yield self._open().default_channel
        except AWAY as exc:
            self.close()
            said = str(exc) or type(exc).__name__
            is_refused = isinstance(exc, AccessRefused | NotAllowed)
            raise (QueueRefused if is_refused else QueueUnavailable)(f"RabbitMQ: {said}") from exc
        finally:
            self._lock.release()

    def _open(self) -> Any:
        """Connect to the servers of the address in turns, to each once."""
        if self._connection is None:
            options: Any = {"read_timeout": self._seconds, "write_timeout": self._seconds}
            self._connection = current_app.connection_for_write(
                connect_timeout=self._seconds, transport_options=options
            )
        tries = max(1, len(self._connection.alt))
        # kombu's own options of the transport would have it try for longer
        self._connection.ensure_connection(
            max_retries=tries - 1, interval_start=0, interval_step=0, reraise_as_library_errors=False
        )
        return self._connection

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.collect()
