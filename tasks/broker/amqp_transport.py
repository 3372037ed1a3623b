"""Kombu's transport for RabbitMQ, mended for a RabbitMQ that fails.

Only the connections of our Celery app use it (amqp_connection.py), because kombu's table of transports belongs to
the whole process.

1. A connection that the server has closed is noticed when it is next used, and the message for which it is used
   fails. The transport looks whether the socket was closed, which costs no round trip, and kombu connects again
   before it publishes.
2. An answer that does not come in time, such as the confirmation of a message, would be taken for that to the next
   question. The transport closes such a connection at once: a polite end would wait for two more answers of a
   server that hangs.
3. An error of a channel (a queue that was deleted, a job that took longer than the server's `consumer_timeout`),
   and an error while kombu connects, would end the worker. The transport counts both as errors of the connection.
4. With several servers, kombu checks each certificate by the name of the first. The transport uses that of the
   host.
5. Properties of a message that py-amqp cannot read (text that is no UTF-8, a moment beyond the calendar) would end
   the worker, and then the next. The transport reads such a message as one without properties. It names no task,
   so Celery rejects it.
"""

import select
import traceback
from collections.abc import Callable
from typing import Any

from amqp.exceptions import ChannelError, MessageNacked, RecoverableConnectionError
from amqp.method_framing import frame_handler
from amqp.serialization import GenericContent
from kombu.exceptions import OperationalError
from kombu.transport import pyamqp

#: The server has closed its side; only Linux tells that while unread bytes are there.
_CLOSED = select.POLLHUP | select.POLLERR | getattr(select, "POLLRDHUP", 0)

#: In the header of a message, the bytes up to the size of its body, and flags that name no property.
_SIZE_OF_BODY = 12
_NO_PROPERTIES = b"\x00\x00"


class GivesUp:
    """Its connection is of no use any more when an answer has not come within `read_timeout`."""

    connection: Any

    def wait(self, *args: Any, **kwargs: Any) -> Any:
        connection = self.connection
        try:
            return super().wait(*args, **kwargs)  # type: ignore[misc]
        except TimeoutError as exc:
            connection.collect()
            raise RecoverableConnectionError("RabbitMQ did not answer in time") from exc


class Channel(GivesUp, pyamqp.Channel):
    def basic_publish_confirm(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().basic_publish_confirm(*args, **kwargs)
        except MessageNacked as exc:  # it has no words, and Celery passes these on
            raise MessageNacked("RabbitMQ refused a message") from exc


def reads_any_properties(connection: Any, callback: Any) -> Callable[[Any], bool]:
    """Return what reads each frame of the connection. Properties that cannot be read are read as none."""
    read = frame_handler(connection, callback)

    def read_frame(frame: Any) -> bool:
        try:
            return bool(read(frame))
        except Exception as exc:
            if not is_raised_in(exc, GenericContent.inbound_header):
                raise
            kind, channel, content = frame
            return bool(read((kind, channel, bytes(content[:_SIZE_OF_BODY]) + _NO_PROPERTIES)))

    return read_frame


class Connection(GivesUp, pyamqp.Connection):
    Channel = Channel

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{"frame_handler": reads_any_properties, **options})


class Transport(pyamqp.Transport):
    Connection = Connection
    connection_errors = (*pyamqp.Transport.connection_errors, ChannelError, OperationalError)

    def verify_connection(self, connection: Any) -> bool:
        if not connection.connected:
            return False
        if _is_closed(connection.transport.sock):
            connection.collect()
            return False
        return True

    def establish_connection(self) -> Any:
        client: Any = self.client
        if isinstance(client.ssl, dict):
            # kombu writes the host into it, and other connections share it
            client.ssl = dict(client.ssl)
        return super().establish_connection()


class SSLTransport(pyamqp.SSLTransport, Transport):
    pass


def _is_closed(sock: Any) -> bool:
    """Whether the server has closed the connection, as far as this system knows by now."""
    poll = select.poll()
    poll.register(sock, _CLOSED)
    return bool(poll.poll(0))


def is_raised_in(exc: BaseException, function: Any) -> bool:
    """Whether this function was running when the error was raised: one call of a library does several things."""
    return any(frame.f_code is function.__code__ for frame, _ in traceback.walk_tb(exc.__traceback__))
