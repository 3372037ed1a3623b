"""Send one request: its time and the size of its answer are bounded. Redirects and proxies are not followed. Each
name is resolved once, checked, and connected by its address."""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import httpcore2

from harbor_refresh.executions.deliveries.addresses import Network, is_allowed, mask
from harbor_refresh.executions.deliveries.answers import Answer
from harbor_refresh.executions.deliveries.messages import Message

#: How much of an answer is read. A longer one is cut off.
MAX_ANSWER = 65_536
#: How long the rest of an answer may take after its status is known.
REST_SECONDS = 1.0
MAX_SHOWN = 200
#: Connections to one receiver, and how long an idle one is kept.
CONNECTIONS = 20
KEPT_SECONDS = 5.0
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


def connections(network: CheckedNetwork) -> httpcore2.AsyncConnectionPool:
    """Make a pool for one receiver. The caller bounds the requests at a time by CONNECTIONS."""
    return httpcore2.AsyncConnectionPool(
        ssl_context=tls(), max_connections=CONNECTIONS, keepalive_expiry=KEPT_SECONDS, network_backend=network
    )


async def send(pool: httpcore2.AsyncConnectionPool, message: Message, timeout: float) -> Answer:
    """Send it and wait for the status of the answer, `timeout` seconds for everything together."""
    try:
        async with asyncio.timeout(timeout):
            return await _send(pool, message)
    except TimeoutError:
        return Answer(None, f"no answer within {timeout:g} s")
    except Forbidden as exc:
        return Answer(None, str(exc))
    except (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.TimeoutException, ssl.SSLError) as exc:
        return Answer(None, f"{type(exc).__name__}: {exc}")
    except Exception as exc:  # a fault of the library must not stop the deliveries of others
        return Answer(None, type(exc).__name__)


async def _send(pool: httpcore2.AsyncConnectionPool, message: Message) -> Answer:
    async with pool.stream("POST", message.url, headers=message.headers, content=message.body) as response:
        status = response.status
        if 200 <= status < 300:
            await _read(response)
            return Answer(status)
        headers = {name.lower(): value.decode("latin-1") for name, value in response.headers}
        error = f"it answered {status}"
        if 300 <= status < 400:
            error += f", a redirect{_target(headers.get(b'location', ''))}, which is not followed"
        elif text := (await _read(response)).decode("utf-8", "replace").strip():
            error += f": {mask(text, message.url)[:MAX_SHOWN]}"
        return Answer(status, error, headers.get(b"retry-after", ""))


def _target(location: str) -> str:
    """Name the host of a redirect, and not its path, which may hold a token."""
    try:
        parts = urlsplit(location[:2_000])
    except ValueError:
        return ""
    return f" to {parts.scheme}://{parts.netloc.rpartition('@')[2]}"[:MAX_SHOWN] if parts.netloc else ""


async def _read(response: httpcore2.Response) -> bytes:
    """Read the rest of an answer, so that the connection can be used again. A long or slow rest is left."""
    read = b""
    with suppress(TimeoutError, httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.TimeoutException):
        async with asyncio.timeout(REST_SECONDS):
            async for part in response.aiter_stream():
                read += part
                if len(read) > MAX_ANSWER:
                    break
    return read
