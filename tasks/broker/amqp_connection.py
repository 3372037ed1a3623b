"""The connections of one Celery app, for which `amqp://` and `redis://` mean the mended transports
(amqp_transport.py, redis_transport.py).

kombu finds a transport by the scheme of an address, in one table for the whole process. A project may have
connections of its own in that process, so the table stays as it is. The connections of the app take the mended
class where the table names kombu's. If one goes on to the next server of its address, kombu asks for it again.
"""

from typing import Any

import kombu
from celery import Celery
from celery.app.amqp import AMQP
from kombu import connection as of_kombu
from kombu.transport import pyamqp, redis
from kombu.utils.collections import HashedSeq

from harbor_refresh.tasks.broker import amqp_transport, redis_transport

MENDED: dict[Any, Any] = {
    pyamqp.Transport: amqp_transport.Transport,
    pyamqp.SSLTransport: amqp_transport.SSLTransport,
    redis.Transport: redis_transport.Transport,
    redis.SentinelTransport: redis_transport.SentinelTransport,
}


class BrokerConnection(kombu.Connection):
    def get_transport_cls(self) -> Any:
        found = super().get_transport_cls()
        return MENDED.get(found, found)

    def Pool(self, limit: int | None = None, **options: Any) -> "BrokerPool":
        return BrokerPool(self, limit, **options)

    def __eqhash__(self) -> Any:
        """Kombu finds the pool of a connection by this, so one of the project to the same server has another."""
        return HashedSeq(BrokerConnection, *super().__eqhash__())


class PooledConnection(of_kombu.PooledConnection, BrokerConnection):  # type: ignore[misc]
    pass


class BrokerPool(of_kombu.ConnectionPool):
    def new(self) -> PooledConnection:
        return PooledConnection(self, **dict(self.connection._info(resolve=False)))


class BrokerAMQP(AMQP):
    Connection = BrokerConnection


def mend_connections(app: Any) -> None:
    """Give the app these connections, unless it has a class of its own for them. Celery makes the class when the
    app is first used, and a program may have used it already."""
    if app.amqp_cls == Celery.amqp_cls:
        app.amqp_cls = BrokerAMQP
        if "amqp" in vars(app):
            app.amqp.Connection = BrokerConnection
