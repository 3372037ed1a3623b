"""Send one request: its time and the size of its answer are bounded. Redirects and proxies are not followed."""

import asyncio
import ssl
from contextlib import suppress
from urllib.parse import urlsplit

import httpcore2

from harbor_refresh.executions.deliveries.addresses import mask
from harbor_refresh.executions.deliveries.answers import Answer
from harbor_refresh.executions.deliveries.messages import Message
from harbor_refresh.executions.deliveries.network import CheckedNetwork, Forbidden, tls

#: How much of an answer is read. A longer one is cut off.
MAX_ANSWER = 65_536
#: How long the rest of an answer may take after its status is known.
REST_SECONDS = 1.0
MAX_SHOWN = 200
#: Connections to one receiver, and how long an idle one is kept.
CONNECTIONS = 20
KEPT_SECONDS = 5.0


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
