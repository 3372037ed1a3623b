"""The address of RabbitMQ, as an environment variable holds it.

Several servers of one cluster have `;` between them, as Celery takes them, and are tried in turns. Without a user
it is RabbitMQ's `guest`, without a vhost it is `/`. The options of TLS after `?` are those of an address of Redis.
"""

import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import SplitResult, quote, unquote, urlsplit

from harbor_refresh.tasks.broker.redis_address import TLS, BadAddress, Place, read_options, read_place, read_tls

TAKES = "amqp://user:password@host:port/vhost, or amqps for TLS; several with ; between them"
PORTS = {"amqp": 5672, "amqps": 5671}
_TRUST = {"required": ssl.CERT_REQUIRED, "optional": ssl.CERT_OPTIONAL, "none": ssl.CERT_NONE}
#: What our name of an option is called by py-amqp.
_NAMES = {"ssl_ca_certs": "ca_certs", "ssl_certfile": "certfile", "ssl_keyfile": "keyfile"}


@dataclass(frozen=True, kw_only=True)
class AmqpServer:
    """`tls`: None for no TLS, else the options of redis-py's connection, as `read_tls` returns them."""

    place: Place
    vhost: str = "/"
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: dict[str, Any] | None = None

    @property
    def url(self) -> str:
        """The address without options, in the form that Celery understands."""
        scheme = "amqp" if self.tls is None else "amqps"
        login = f"{quote(self.username, safe='')}:{quote(self.password or '', safe='')}@" if self.username else ""
        return f"{scheme}://{login}{self.place}/{quote(self.vhost, safe='')}"


def is_amqp(url: str) -> bool:
    return url.startswith(("amqp:", "amqps:"))


@cache
def read_amqp_servers(url: str) -> tuple[AmqpServer, ...]:
    """Read the servers of an address, at least one. Raises BadAddress."""
    servers = tuple(_server(one.strip()) for one in url.split(";") if one.strip())
    if not servers:
        raise BadAddress("no host")
    if any(one.tls != servers[0].tls for one in servers):
        raise BadAddress("servers that differ in their TLS")
    return servers


def _server(url: str) -> AmqpServer:
    parts = urlsplit(url)
    if parts.scheme not in PORTS:
        raise BadAddress(f"the scheme {parts.scheme}" if parts.scheme else "no scheme")
    if parts.fragment:
        raise BadAddress("a # that is not written as %23")
    login, _, host = parts.netloc.rpartition("@")
    if "," in host:
        raise BadAddress("several hosts: each needs a whole address, with ; between them")
    username, has_password, password = login.partition(":")
    if bool(username) != bool(has_password and password):
        raise BadAddress("a user without a password, or a password without a user")
    return AmqpServer(
        place=read_place(host, PORTS[parts.scheme]),
        vhost=unquote(parts.path.removeprefix("/")) or "/",
        username=unquote(username) or None,
        password=unquote(password) or None,
        tls=_tls(parts),
    )


def _tls(parts: SplitResult) -> dict[str, Any] | None:
    given = read_options(parts.query, TLS)
    if parts.scheme == "amqps":
        return read_tls(given)
    if given:
        raise BadAddress(f"{min(given)} without TLS: begin with amqps")
    return None


def tls_for_celery(tls: dict[str, Any] | None) -> dict[str, Any] | None:
    """Translate the options of TLS for py-amqp. It checks the name of the server if `server_hostname` is there;
    None stands for the host of the address, so that each server of a cluster is checked by its own name."""
    if tls is None:
        return None
    named = {_NAMES[name]: path for name, path in tls.items() if name in _NAMES}
    checked = {"server_hostname": None} if tls["ssl_check_hostname"] else {}
    return {**named, "cert_reqs": _TRUST[tls["ssl_cert_reqs"]], **checked}


def amqp_secrets(url: str) -> Iterator[str]:
    for server in read_amqp_servers(url):
        yield server.password or ""
