"""Kombu's Redis transport, mended for a Redis that fails (docs/explanation/decisions/0011-celery-settings.md).

1. A worker whose connection breaks while it holds unacknowledged messages puts them back when it closes its
   channel. If the connection is closed by then, kombu 5.7 reads the host name of None. The AttributeError is no
   connection error, so the worker would end. The transport raises a connection error instead: the worker
   reconnects, and the messages come back after the visibility timeout.
2. A server that does not serve (a replica, or a server that refuses writes) answers with an error that kombu
   does not treat as a connection error, so the worker would end. The transport treats it as one, and connects
   only to a server that takes writes. Until then the worker tries again with Celery's back-off.
3. Redis removes a message from its list before the worker can record it as unacknowledged. If Redis refuses the
   record, the message would be lost. The process keeps it and puts it back over its next connection.
4. A message whose acknowledgement is refused would count as in progress, and a worker with enough of them would
   never take another. The transport stops counting it; it comes again after the visibility timeout.
5. Kombu makes a Redis client for each command that it sends, which takes as long as the command. The channel
   keeps one.
6. Behind Sentinel, kombu's connections know neither 2 nor a limit of the time that a Sentinel may take. The
   transport for `sentinel://` connects as the queue's clients do (tasks/queue/primaries.py).
7. An entry of a queue that is no message would end the worker. The transport drops it
   (tasks/broker/redis_entries.py).
"""

import os
from collections import deque
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from kombu.exceptions import OperationalError
from kombu.transport import TRANSPORT_ALIASES, redis, virtual
from kombu.utils.url import url_to_parts

from harbor_refresh.tasks.broker.redis_address import Place
from harbor_refresh.tasks.broker.redis_entries import DropsEntries, OfEntries
from harbor_refresh.tasks.queue.connection import NotServing, rerouting, sentinels

__all__ = ["register_transport"]

#: A list that never exists. A push to it changes nothing, and is refused when writes are refused.
NO_LIST = "harbor_refresh.none"

SENTINEL_PORT = 26379
#: The seconds for an answer if the transport options name none.
DEFAULT_TIMEOUT = 5.0

#: Messages that the process took from a queue and could not record, with the name of their queue. They belong
#: to that process, not to its children.
unrecorded: deque[tuple[str, dict[str, Any]]] = deque()
os.register_at_fork(after_in_child=unrecorded.clear)


class Unrecorded(Exception):
    """A message was taken from its queue, and could not be recorded as unacknowledged."""


class QoS(redis.QoS):
    def append(self, message: Any, delivery_tag: str) -> None:
        try:
            super().append(message, delivery_tag)
        except self.channel.connection_errors as exc:  # type: ignore[attr-defined]
            raise Unrecorded from exc

    def ack(self, delivery_tag: str) -> None:
        try:
            super().ack(delivery_tag)
        except self.channel.connection_errors:  # type: ignore[attr-defined]
            virtual.QoS.ack(self, delivery_tag)
            raise

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        try:
            super().reject(delivery_tag, requeue)
        except self.channel.connection_errors:  # type: ignore[attr-defined]
            virtual.QoS.ack(self, delivery_tag)
            raise


class Channel(OfEntries, redis.Channel):
    QoS = QoS
    connection_class = rerouting(with_tls=False)
    connection_class_ssl = rerouting(with_tls=True)
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

    def put_back(self) -> None:
        """Put the taken messages back. If the server takes no writes, raise, even if there are none."""
        self.client.lpushx(NO_LIST, "")
        while unrecorded:
            queue, message = unrecorded[0]
            self._put(queue, message)
            unrecorded.popleft()


class SentinelChannel(Channel):
    from_transport_options = (*Channel.from_transport_options, "master_name", "sentinel_kwargs")
    master_name = ""
    sentinel_kwargs: Mapping[str, Any] = MappingProxyType({})

    def _connparams(self, asynchronous: bool = False) -> Any:
        params = super()._connparams(asynchronous=asynchronous)
        assert self.connection.client  # noqa: S101  # else the parent has raised
        named = [url_to_parts(url) for url in self.connection.client.alt]
        places = [Place(one.hostname or "", one.port or SENTINEL_PORT) for one in named]
        places = places or [Place(params["host"], int(params["port"]))]
        del params["host"], params["port"]
        timeout = params["socket_timeout"] or DEFAULT_TIMEOUT
        return {**params, "sentinels": sentinels(self.master_name, places, self.sentinel_kwargs, timeout)}


class Transport(DropsEntries, redis.Transport):
    Channel = Channel
    # OperationalError, into which kombu turns an error while it connects, is one too; else a starting worker ends
    connection_errors = (*redis.Transport.connection_errors, NotServing, OperationalError)

    def establish_connection(self) -> Any:
        connection: Any = super().establish_connection()
        try:
            self._avail_channels[-1].put_back()  # type: ignore[attr-defined]
        except Exception:
            self.close_connection(connection)
            raise
        return connection

    def _deliver(self, message: Any, queue: Any) -> None:
        try:
            super()._deliver(message, queue)
        except Unrecorded as exc:
            unrecorded.append((queue, message))
            raise (exc.__cause__ or exc) from None


class SentinelTransport(Transport):
    Channel = SentinelChannel
    default_port = SENTINEL_PORT


def register_transport() -> None:
    """Make `redis://`, `rediss://` and `sentinel://` mean the mended transport."""
    for scheme in ("redis", "rediss"):
        TRANSPORT_ALIASES[scheme] = f"{__name__}:Transport"
    TRANSPORT_ALIASES["sentinel"] = f"{__name__}:SentinelTransport"
