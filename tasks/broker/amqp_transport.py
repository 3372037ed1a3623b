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
"""

import select
from typing import Any

from amqp.exceptions import ChannelError, MessageNacked, RecoverableConnectionError
from kombu.exceptions import OperationalError
from kombu.transport import pyamqp

#: The server has closed its side; only Linux tells that while unread bytes are there.
_CLOSED = select.POLLHUP | select.POLLERR | getattr(select, "POLLRDHUP", 0)


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


class Connection(GivesUp, pyamqp.Connection):
    Channel = Channel


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
