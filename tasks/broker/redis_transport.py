"""Kombu's transport for Redis, mended for a Redis that fails (docs/explanation/decisions/0011-celery-settings.md).
Only the connections of our Celery app use it (amqp_connection.py).

1. A worker whose connection breaks while it holds unacknowledged messages puts them back when it closes its
   channel. If the connection is closed by then, kombu 5.7 reads the host name of None. The AttributeError is no
   connection error, so the worker would end. The transport raises a connection error instead: the worker
   reconnects, and the messages come back after the visibility timeout.
2. A server that does not serve (a replica, or a server that refuses writes) answers with an error that kombu
   does not treat as a connection error, so the worker would end. The transport treats it as one, and connects
   only to a server that takes writes. Until then the worker tries again with Celery's back-off.
3. A message whose acknowledgement is refused would count as in progress, and a worker with enough of them would
   never take another. The transport stops counting it; it comes again after the visibility timeout.
4. Kombu makes a Redis client for each command that it sends, which takes as long as the command. The channel
   keeps one.
5. Behind Sentinel, kombu does not limit the time that a Sentinel may take. The transport does.
"""

from contextlib import suppress
from typing import Any

from kombu.exceptions import OperationalError
from kombu.transport import redis

from harbor_refresh.tasks.queue import connection as of_queue

#: A list that never exists. A push to it changes nothing, and is refused when writes are refused.
NO_LIST = "harbor_refresh.none"
#: The seconds for an answer if the transport options name none.
DEFAULT_TIMEOUT = 5.0


class QoS(redis.QoS):
    _quick_ack: Any

    def ack(self, delivery_tag: str) -> None:
        self._quick_ack(delivery_tag)
        super().ack(delivery_tag)

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        self._quick_ack(delivery_tag)
        super().reject(delivery_tag, requeue)


class Channel(redis.Channel):
    QoS: Any = QoS
    connection_class: Any = of_queue.ReroutingConnection
    connection_class_ssl: Any = of_queue.ReroutingSSLConnection
    _kept: Any = None

    def _connparams(self, asynchronous: bool = False) -> Any:
        if self.connection.client is None:
            raise ConnectionError("the connection to the broker is closed")
        return super()._connparams(asynchronous=asynchronous)  # type: ignore[misc]

    def _create_client(self, asynchronous: bool = False) -> Any:
        """Return the client that is kept as long as its connections."""
        if asynchronous:
            return super()._create_client(asynchronous=True)  # type: ignore[misc]
        if self._kept is None or self._kept.connection_pool is not self.pool:
            self._kept = super()._create_client()  # type: ignore[misc]
        return self._kept


class Transport(redis.Transport):
    Channel: Any = Channel
    _avail_channels: Any
    # OperationalError, into which kombu turns an error while it connects, is one too; else a starting worker ends
    connection_errors = (*redis.Transport.connection_errors, of_queue.NotServing, OperationalError)

    def establish_connection(self) -> Any:
        connection: Any = super().establish_connection()
        try:
            with suppress(of_queue.NOT_PERMITTED):  # which says nothing about whether the server takes writes
                self._avail_channels[-1].client.lpushx(NO_LIST, "")
        except Exception:
            self.close_connection(connection)
            raise
        return connection


class SentinelChannel(redis.SentinelChannel, Channel):
    connection_class = of_queue.ReroutingSentinelConnection
    connection_class_ssl = of_queue.ReroutingSentinelSSLConnection
    sentinel_kwargs: Any = None
    socket_timeout: float | None

    def _sentinel_managed_pool(self, asynchronous: bool = False) -> Any:
        limits = of_queue.of_sentinels(self.socket_timeout or DEFAULT_TIMEOUT)
        self.sentinel_kwargs = limits | (self.sentinel_kwargs or {})
        return super()._sentinel_managed_pool(asynchronous)  # type: ignore[misc]


class SentinelTransport(redis.SentinelTransport, Transport):
    Channel = SentinelChannel
