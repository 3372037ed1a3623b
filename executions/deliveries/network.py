"""The network that webhooks are sent over: each name is resolved once, checked, and connected by its address."""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from ipaddress import ip_address
from typing import Any

import httpcore2

from harbor_refresh.executions.deliveries.addresses import Network, is_allowed

#: How many of the addresses of a name are tried.
MAX_ADDRESSES = 4
#: Threads that resolve names. A resolver that hangs holds one thread for each name.
RESOLVING = 32

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


class Forbidden(Exception):
    """The name leads to no address that webhooks may reach. Which of the two is at fault is not told, because it
    would tell which names the network inside has."""

    def __init__(self) -> None:
        super().__init__("the name leads to no address that webhooks may reach")


@cache
def tls() -> ssl.SSLContext:
    """The context of this process; to read the certificates takes longer than a request."""
    return httpcore2.default_ssl_context()


class Resolver:
    """Resolve names. Requests that ask for the same name at the same time share one look-up."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(RESOLVING, thread_name_prefix="resolve")
        self._running: dict[tuple[str, int], asyncio.Future[list[str]]] = {}

    async def __call__(self, host: str, port: int) -> list[str]:
        key = (host, port)
        if key not in self._running:
            loop = asyncio.get_running_loop()
            looked_up = loop.run_in_executor(self._threads, _look_up, host, port)
            looked_up.add_done_callback(lambda _: self._running.pop(key, None))
            self._running[key] = looked_up
        # a request that gives up must not cancel the look-up that others wait for
        return await asyncio.shield(self._running[key])

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def _look_up(host: str, port: int) -> list[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class CheckedNetwork(httpcore2.AsyncNetworkBackend):
    """Connect to addresses that are allowed. What is connected is what was checked, so a name that resolves to
    something else a moment later changes nothing. httpcore2 checks a certificate against the name."""

    def __init__(self, resolve: Resolve, allowed: Sequence[Network]) -> None:
        self._resolve = resolve
        self._allowed = allowed
        self._inner = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        try:
            addresses = [str(ip_address(host))]
        except ValueError:
            addresses = list(await self._resolved(host, port))
        for one in addresses:
            if not is_allowed(ip_address(one), self._allowed):
                raise Forbidden
        failure: Exception = Forbidden()
        for one in addresses[:MAX_ADDRESSES]:
            try:
                return await self._inner.connect_tcp(one, port, timeout, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as exc:
                failure = exc
        raise failure

    async def _resolved(self, host: str, port: int) -> Sequence[str]:
        try:
            return await self._resolve(host, port)
        except (OSError, UnicodeError) as exc:
            raise Forbidden from exc
