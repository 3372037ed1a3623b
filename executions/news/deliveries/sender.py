"""The sender: it claims deliveries of webhooks and sends them, hundreds at once.

The time of a request and the size of its answer are bounded. Redirects and proxies are not followed. Each name is
resolved once, checked, and connected by its address.
"""

import asyncio
import socket
import ssl
import time
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache, partial
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import httpcore2

from harbor_refresh.executions.conf import pacing
from harbor_refresh.executions.models import Delivery, Subscription
from harbor_refresh.executions.models.notifications import Kind, State
from harbor_refresh.executions.news.deliveries import addresses, answers, claims
from harbor_refresh.executions.news.deliveries.addresses import Network, is_allowed, mask
from harbor_refresh.executions.news.deliveries.answers import Answer
from harbor_refresh.executions.news.deliveries.claims import Result, read_changes
from harbor_refresh.executions.news.deliveries.messages import Message, message, trial

#: How long results wait to be recorded together, while requests are under way.
WAIT_SECONDS = 0.1
#: Deliveries that a sender holds: of one webhook, and of all together, unless there are more webhooks. Those of a
#: webhook are more than its connections, so that no connection waits for the database.
MOST_OF_ONE = 200
MOST = 1_000
#: A first lease, in timeouts of a request: a claimed delivery may wait for a connection until one is left.
LEASE_TIMEOUTS = 3
#: How much of an answer is read. A longer one is cut off.
MAX_ANSWER = 65_536
#: How long the rest of an answer may take after its status is known.
REST_SECONDS = 1.0
MAX_SHOWN = 200
#: Connections to one receiver, and how long an idle one is kept.
CONNECTIONS, KEPT_SECONDS = 20, 5.0
#: How many of the addresses of a name are tried.
MAX_ADDRESSES = 4
#: Threads that resolve names.
RESOLVING = 32


class Forbidden(Exception):
    """The name leads to no address that webhooks may reach. Which of the two is at fault is not told, because it
    would tell which names the network inside has."""


@cache
def tls() -> ssl.SSLContext:
    """The context of this process; to read the certificates takes longer than a request."""
    return httpcore2.default_ssl_context()


def look_up(host: str, port: int) -> list[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class CheckedNetwork(httpcore2.AsyncNetworkBackend):
    """Connect to addresses that are allowed. What is connected is what was checked, so a name that resolves to
    something else a moment later changes nothing. httpcore2 checks a certificate against the name."""

    def __init__(self, threads: ThreadPoolExecutor, allowed: Sequence[Network]) -> None:
        self._threads = threads
        self._allowed = allowed
        self._inner = httpcore2.AnyIOBackend()
        #: Requests that resolve one name at the same time share a look-up, so a hanging name takes one thread.
        self._running: dict[tuple[str, int], asyncio.Future[list[str]]] = {}

    async def connect_tcp(self, host: str, port: int, **options: Any) -> httpcore2.AsyncNetworkStream:  # type: ignore[override]
        try:
            found = [str(ip_address(host))]
        except ValueError:
            found = await self._resolved(host, port)
        if not all(is_allowed(ip_address(one), self._allowed) for one in found):
            raise Forbidden
        failure: Exception = Forbidden()
        for one in found[:MAX_ADDRESSES]:
            try:
                return await self._inner.connect_tcp(one, port, **options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as exc:
                failure = exc
        raise failure

    async def _resolved(self, host: str, port: int) -> list[str]:
        key = (host, port)
        if key not in self._running:
            self._running[key] = asyncio.get_running_loop().run_in_executor(self._threads, look_up, host, port)
            self._running[key].add_done_callback(lambda _: self._running.pop(key, None))
        try:
            # a request that gives up must not cancel the look-up that other requests wait for
            return await asyncio.shield(self._running[key])
        except (OSError, UnicodeError) as exc:
            raise Forbidden from exc


class _Receiver:
    """The connections to one webhook, and how many are free: one that hangs takes nothing from the others. Each is
    a pool with one connection, because a larger pool compares each request with all of its connections."""

    def __init__(self, network: CheckedNetwork) -> None:
        options: dict[str, Any] = {"ssl_context": tls(), "max_connections": 1, "keepalive_expiry": KEPT_SECONDS}
        self._connect = partial(httpcore2.AsyncConnectionPool, **options, network_backend=network)
        self.idle: list[httpcore2.AsyncConnectionPool] = []
        self.free_connections = asyncio.Semaphore(CONNECTIONS)
        #: Whether a request of the last claim has failed. Then deliveries that wait for a connection are released.
        self.fails = False

    async def send(self, message: Message, timeout: float) -> Answer:
        """Send it and wait for the status of the answer, `timeout` seconds for everything together."""
        connection = self.idle.pop() if self.idle else self._connect()
        try:
            async with asyncio.timeout(timeout):
                answer = await self._send(message, connection)
        except TimeoutError:
            return Answer(None, f"no answer within {timeout:g} s")
        except Forbidden:
            return Answer(None, "the name leads to no address that webhooks may reach")
        except (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.TimeoutException, ssl.SSLError) as exc:
            return Answer(None, f"{type(exc).__name__}: {exc}")
        except Exception as exc:  # a fault of the library must not stop the deliveries of others
            return Answer(None, type(exc).__name__)
        self.idle.append(connection)
        return answer

    async def _send(self, message: Message, connection: httpcore2.AsyncConnectionPool) -> Answer:
        sending = connection.stream("POST", message.url, headers=message.headers, content=message.body)
        async with sending as response:
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


class Sender:
    """Used with `with`: at its end it waits for the answers that are due, and records them.

    The asyncio loop runs only inside `record`. The database is asked between its runs, in the same thread, because
    Django refuses queries inside a loop.
    """

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._threads = ThreadPoolExecutor(RESOLVING, thread_name_prefix="resolve")
        network = CheckedNetwork(self._threads, addresses.networks())
        self._receivers: defaultdict[int, _Receiver] = defaultdict(lambda: _Receiver(network))
        self._sending: dict[asyncio.Task[Result], int] = {}
        self._is_ending = False
        webhooks = Subscription.objects.filter(kind=Kind.WEBHOOK, enabled=True).count()
        self._most_of_one = min(MOST_OF_ONE, MOST // max(1, webhooks))
        self._room = 1

    def __enter__(self) -> "Sender":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._is_ending = True
        try:
            while self._sending and kind is None:
                self.record()
            self._runner.run(self._end())
        finally:
            self._runner.close()
            self._threads.shutdown(wait=False, cancel_futures=True)

    def claim(self) -> bool:
        """Claim what is due, up to the room of each webhook, and begin to send it. Return whether any is sent.

        The room is 1, and doubles while bodies are quick to read, because all other requests wait for that."""
        timeout, began = pacing.DELIVER_TIMEOUT_SECONDS, time.monotonic()
        taken = claims.claim(self._room, LEASE_TIMEOUTS * timeout, sending=list(self._sending.values()))
        changes = read_changes(taken)
        if taken:
            self._room = min(self._most_of_one, 2 * self._room) if time.monotonic() < began + 1 else 1
        for one in taken:
            send_before = began + (LEASE_TIMEOUTS * min(one.attempts, claims.LONGEST_LEASE) - 1) * timeout
            self._receivers[one.subscription_id].fails = False
            sending = self._send(one, message(one.subscription, changes[one.id]), send_before)
            self._sending[self._runner.get_loop().create_task(sending)] = one.subscription_id
        return bool(self._sending)

    def record(self) -> None:
        """Wait a moment for results, and record them."""
        done, _ = self._runner.run(asyncio.wait(self._sending, timeout=WAIT_SECONDS))
        claims.record([one.result() for one in done])
        for one in done:
            del self._sending[one]

    def test(self, webhook: Subscription, seconds: float) -> Answer:
        """Send a test, which is no delivery."""
        return self._runner.run(self._receivers[webhook.pk].send(trial(webhook), seconds))

    async def _send(self, claimed: Delivery, message: Message, send_before: float) -> Result:
        receiver = self._receivers[claimed.subscription_id]
        if time.monotonic() > send_before:  # an attempt, so the next lease is longer, up to LONGEST_LEASE
            return Result(claimed, State.PENDING, "it took longer to read than its lease lasted")
        async with receiver.free_connections:
            if receiver.fails or self._is_ending or time.monotonic() > send_before:
                return Result(claimed, State.PENDING, is_attempt=False)
            answer = await receiver.send(message, pacing.DELIVER_TIMEOUT_SECONDS)
        result = answers.result(claimed, answer)
        receiver.fails |= result.answered is False
        return result

    async def _end(self) -> None:
        for receiver in self._receivers.values():
            for connection in receiver.idle:
                await connection.aclose()


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
