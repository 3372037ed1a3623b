"""Kombu's Redis transport, mended for a Redis that fails (docs/decisions/0011-celery-settings.md).

1. A worker whose connection breaks while it holds unacknowledged messages puts them back as it closes its
   channel. If the connection is closed by then, kombu 5.7 asks a None for its host name; the AttributeError is no
   connection error, and the worker ends. Raised as a connection error, it lets the worker reconnect, and the
   messages come back after the visibility timeout.
2. A server that does not serve (a replica, or one that refuses writes) answers with an error that is no
   connection error to kombu, and the worker ends. Here it is one, and a connection is made only to a server that
   takes writes: until then the worker tries again with Celery's back-off.
3. Redis removes a message from its list before the worker can record it as unacknowledged. If the record is
   refused the message would be lost. The process keeps it, and puts it back over its next connection.
4. A message whose acknowledgement is refused would count as one that the worker still works on, and a worker with
   enough of them would never take another. It is counted no more; it comes again after the visibility timeout.
"""

import os
from collections import deque
from typing import Any

from kombu.exceptions import OperationalError
from kombu.transport import TRANSPORT_ALIASES, redis, virtual

from tasks.queue.connection import NotServing, WaryConnection, WarySSLConnection

#: A list that never exists: to push to it is refused like any other write, and changes nothing.
NO_LIST = "harbor_refresh.none"

#: Messages that were taken from a queue and could not be recorded, with the name of their queue. They belong to
#: the process that took them, not to its children.
_taken: deque[tuple[str, dict[str, Any]]] = deque()
os.register_at_fork(after_in_child=_taken.clear)


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


class Channel(redis.Channel):
    QoS = QoS
    connection_class = WaryConnection
    connection_class_ssl = WarySSLConnection

    def _connparams(self, asynchronous: bool = False) -> Any:
        if self.connection.client is None:
            raise ConnectionError("the connection to the broker is closed")
        return super()._connparams(asynchronous=asynchronous)  # type: ignore[misc]

    def put_back(self) -> None:
        """Put back what was taken. A server that takes no writes raises, even if there is nothing to put back."""
        self.client.lpushx(NO_LIST, "")
        while _taken:
            queue, message = _taken[0]
            self._put(queue, message)
            _taken.popleft()


class Transport(redis.Transport):
    Channel = Channel
    # what kombu makes of an error while it connects is one as well: a worker that starts would end of it
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
            _taken.append((queue, message))
            raise (exc.__cause__ or exc) from None


def mend() -> None:
    """Make `redis://` and `rediss://` mean the mended transport."""
    for scheme in ("redis", "rediss"):
        TRANSPORT_ALIASES[scheme] = f"{__name__}:Transport"
