"""What Celery needs to connect to the broker that CELERY_BROKER_URL names, by the kind of server.

The servers of a RabbitMQ cluster have `;` between them, as Celery takes them, and are tried in turns. Without a
user it is RabbitMQ's `guest`, without a vhost it is `/`. The options of TLS after `?` are those of an address of
Redis (redis_address.py).

A publisher gives up within a second (PUBLISHERS), because its caller waits and the message is only a hint.
"""

import socket
import ssl
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from harbor_refresh.tasks.broker.redis_address import TAKES as REDIS_TAKES
from harbor_refresh.tasks.broker.redis_address import (
    TLS,
    BadAddress,
    OfCelery,
    for_celery,
    read_options,
    read_place,
    read_tls,
)

TAKES = f"{REDIS_TAKES}; or amqp://user:password@host:port/vhost, or amqps for TLS; several with ; between them"

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
PORTS = {"amqp": 5672, "pyamqp": 5672, "amqps": 5671}
#: What py-amqp calls the options of TLS that redis-py has, and how it says whom to trust.
_NAMES = {"ssl_ca_certs": "ca_certs", "ssl_certfile": "certfile", "ssl_keyfile": "keyfile"}
_TRUST = {"required": ssl.CERT_REQUIRED, "optional": ssl.CERT_OPTIONAL, "none": ssl.CERT_NONE}


def is_amqp(url: str) -> bool:
    return url.startswith(tuple(f"{scheme}:" for scheme in PORTS))


def check_broker(url: str) -> None:
    """Raise BadAddress, or another ValueError, if no broker can be meant."""
    broker_of_celery(url, visibility_timeout=1)


def broker_of_celery(url: str, visibility_timeout: float) -> OfCelery:
    """Translate an address for Celery: its own form, the transport options, and TLS."""
    if is_amqp(url):
        return _rabbitmq(url)
    found = for_celery(url)
    options: dict[str, Any] = {"visibility_timeout": visibility_timeout, **OF_REDIS, **PUBLISHERS}
    return found._replace(options=options | found.options)


def _rabbitmq(url: str) -> OfCelery:
    servers = [_server(one.strip()) for one in url.split(";") if one.strip()]
    (_, tls), *_ = servers
    if any(other != tls for _, other in servers):
        raise BadAddress("servers that differ in their TLS")
    return OfCelery(";".join(server for server, _ in servers), {**PUBLISHERS, **OF_RABBITMQ}, _tls_of_amqp(tls))


def _server(url: str) -> tuple[str, dict[str, Any] | None]:
    """Return the address without options, and the options of TLS. It names the port and the vhost: without one,
    kombu would take that of the server before."""
    parts = urlsplit(url)
    if parts.scheme not in PORTS:
        raise BadAddress(f"the scheme {parts.scheme}" if parts.scheme else "no scheme")
    if parts.fragment:
        raise BadAddress("a # that is not written as %23")
    login, at, host = parts.netloc.rpartition("@")
    if "," in host:
        raise BadAddress("several hosts: each needs a whole address, with ; between them")
    username, _, password = login.partition(":")
    if bool(username) != bool(password):
        raise BadAddress("a user without a password, or a password without a user")
    place = read_place(host, PORTS[parts.scheme])
    vhost = unquote(parts.path.removeprefix("/")) or "/"
    tls = read_tls(read_options(parts.query, TLS), parts.scheme, "amqps")
    return f"{parts.scheme}://{login}{at}{place}/{quote(vhost, safe='')}", tls


def _tls_of_amqp(tls: dict[str, Any] | None) -> dict[str, Any] | None:
    """Translate the options of TLS for py-amqp. It checks the name of the server if `server_hostname` is there;
    None stands for the host of the address, so that each server of a cluster is checked by its own name."""
    if tls is None:
        return None
    named = {_NAMES[name]: path for name, path in tls.items() if name in _NAMES}
    checked = {"server_hostname": None} if tls["ssl_check_hostname"] else {}
    return {**named, "cert_reqs": _TRUST[tls["ssl_cert_reqs"]], **checked}
