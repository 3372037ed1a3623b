"""What Celery needs to connect to the broker that CELERY_BROKER_URL names, by the kind of server.

A publisher gives up within a second (PUBLISHERS), because its caller waits and the message is only a hint.
"""

import socket
from typing import Any

from harbor_refresh.tasks.broker.amqp_address import TAKES as AMQP_TAKES
from harbor_refresh.tasks.broker.amqp_address import is_amqp, read_amqp_servers, tls_for_celery
from harbor_refresh.tasks.broker.redis_address import TAKES as REDIS_TAKES
from harbor_refresh.tasks.broker.redis_address import OfCelery, for_celery, read_address

TAKES = f"{REDIS_TAKES}; or {AMQP_TAKES}"

PUBLISHERS = {"max_retries": 2, "interval_start": 0, "interval_step": 0.1, "interval_max": 0.2}
OF_REDIS = {
    "unacked_restore_interval": 2,
    "unacked_restore_throttle": 1,
    # a worker that dies while it puts messages back leaves this lock behind, and a snapshot of Redis may hold it
    "unacked_mutex_expire": 10,
    "socket_connect_timeout": 5,
    "socket_timeout": 5,
    "socket_keepalive": True,
}
#: A RabbitMQ that vanishes without closing its connections is noticed within half a minute. By the name of the
#: socket's option, because not every system has each. The last is in milliseconds.
KEEPALIVE = {"TCP_KEEPIDLE": 20, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 2, "TCP_USER_TIMEOUT": 30_000}
OF_RABBITMQ = {
    # a message counts as sent when it is on the disk of RabbitMQ; else a kill loses messages without an error
    "confirm_publish": True,
    "read_timeout": 5,
    "write_timeout": 5,
    "socket_settings": {
        getattr(socket, name): value for name, value in KEEPALIVE.items() if hasattr(socket, name)
    },
}


def check_broker(url: str) -> None:
    """Raise BadAddress, or another ValueError, if no broker can be meant."""
    if is_amqp(url):
        read_amqp_servers(url)
    else:
        read_address(url)


def broker_of_celery(url: str, visibility_timeout: float) -> OfCelery:
    """Translate an address for Celery: its own form, the transport options, and TLS."""
    if is_amqp(url):
        servers = read_amqp_servers(url)
        joined = ";".join(server.url for server in servers)
        return OfCelery(joined, {**PUBLISHERS, **OF_RABBITMQ}, tls_for_celery(servers[0].tls))
    found = for_celery(url)
    options: dict[str, Any] = {"visibility_timeout": visibility_timeout, **OF_REDIS, **PUBLISHERS}
    return found._replace(options=options | found.options)
