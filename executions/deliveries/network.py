"""The network that webhooks are sent over: each name is resolved once, checked, and connected by its address."""

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from ipaddress import ip_address
from typing import Any

import httpcore2

from harbor_refresh.executions.deliveries.addresses import Network, is_allowed

#: How many of the addresses of a name are tried.
MAX_ADDRESSES = 4
#: Threads that resolve names. A resolver that hangs holds one thread for each name.
RESOLVING = 32

Resolve = Callable[[str, int], Sequence[str]]

_deadline = threading.local()


def limit(seconds: float) -> None:
    """Give all that this thread does over the network from now on so many seconds together."""
    _deadline.moment = time.monotonic() + seconds


def _left() -> float:
    left = float(_deadline.moment - time.monotonic())
    if left <= 0:
        raise httpcore2.ReadTimeout
    return left


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
        self._lock = threading.Lock()
        self._running: dict[tuple[str, int], Future[list[str]]] = {}

    def __call__(self, host: str, port: int) -> list[str]:
        with self._lock:
            looked_up = self._running.get((host, port))
            if looked_up is None:
                looked_up = self._threads.submit(_look_up, host, port)
                self._running[host, port] = looked_up
                looked_up.add_done_callback(lambda _: self._running.pop((host, port), None))
        try:
            return looked_up.result(_left())
        except TimeoutError:
            raise httpcore2.ConnectTimeout from None

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def _look_up(host: str, port: int) -> list[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class _Stream(httpcore2.NetworkStream):
    """A connection whose reads and writes end at the deadline of their thread, whatever timeout they are given: a
    timeout of httpcore2 limits each of them and not the request."""

    def __init__(self, inner: httpcore2.NetworkStream) -> None:
        self._inner = inner
        self.close = inner.close  # type: ignore[method-assign]
        self.get_extra_info = inner.get_extra_info  # type: ignore[method-assign]

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, _left())

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, _left())

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, _left()))


class CheckedNetwork(httpcore2.NetworkBackend):
    """Connect to addresses that are allowed. What is connected is what was checked, so a name that resolves to
    something else a moment later changes nothing. httpcore2 checks a certificate against the name."""

    def __init__(self, resolve: Resolve, allowed: Sequence[Network]) -> None:
        self._resolve = resolve
        self._allowed = allowed
        self._inner = httpcore2.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        try:
            addresses = [str(ip_address(host))]
        except ValueError:
            addresses = list(self._resolved(host, port))
        for one in addresses:
            if not is_allowed(ip_address(one), self._allowed):
                raise Forbidden
        failure: Exception = Forbidden()
        for one in addresses[:MAX_ADDRESSES]:
            try:
                return _Stream(self._inner.connect_tcp(one, port, _left(), local_address, socket_options or ()))
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as exc:
                failure = exc
        raise failure

    def _resolved(self, host: str, port: int) -> Sequence[str]:
        try:
            return self._resolve(host, port)
        except (OSError, UnicodeError) as exc:
            raise Forbidden from exc

    def connect_unix_socket(self, *_: Any, **__: Any) -> httpcore2.NetworkStream:
        raise Forbidden
