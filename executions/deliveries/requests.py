"""Send one request and judge no more than whether an answer came: total time, size and redirects are bounded."""

import asyncio
import ssl
from contextlib import suppress
from urllib.parse import urlsplit

import httpcore

from executions.deliveries.answers import Answer
from executions.deliveries.messages import Message
from executions.deliveries.network import CheckedNetwork, Forbidden, tls

#: How much of an answer is read. A longer one is cut off.
MAX_ANSWER = 65_536
#: How long the rest of an answer may take after its status is known.
REST_SECONDS = 1.0
MAX_SHOWN = 200
#: Connections to one receiver.
CONNECTIONS = 20


def pool(network: CheckedNetwork) -> httpcore.AsyncConnectionPool:
    """Make the connections to one receiver. No proxy of the environment is read, no redirect is followed."""
    return httpcore.AsyncConnectionPool(
        ssl_context=tls(),
        max_connections=CONNECTIONS,
        max_keepalive_connections=CONNECTIONS,
        keepalive_expiry=5.0,
        network_backend=network,
    )


async def send(connections: httpcore.AsyncConnectionPool, message: Message, timeout: float) -> Answer:
    """Send it and wait for the status of the answer, `timeout` seconds for everything together."""
    try:
        async with asyncio.timeout(timeout):
            return await _send(connections, message)
    except TimeoutError:
        return Answer(None, f"no answer within {timeout:g} s")
    except Forbidden as exc:
        return Answer(None, str(exc))
    except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException, ssl.SSLError) as exc:
        return Answer(None, f"{type(exc).__name__}: {exc}")
    except Exception as exc:  # a fault of the library must not stop the deliveries of others
        return Answer(None, type(exc).__name__)


async def _send(connections: httpcore.AsyncConnectionPool, message: Message) -> Answer:
    async with connections.stream("POST", message.url, headers=message.headers, content=message.body) as response:
        status = response.status
        if 200 <= status < 300:
            await _read(response)
            return Answer(status)
        headers = {name.lower(): value.decode("latin-1") for name, value in response.headers}
        error = f"it answered {status}"
        if 300 <= status < 400:
            error += f", a redirect{_target(headers.get(b'location', ''))}, which is not followed"
        elif text := (await _read(response))[:MAX_SHOWN].decode("utf-8", "replace").strip():
            error += f": {text}"
        return Answer(status, error, headers.get(b"retry-after", ""))


def _target(location: str) -> str:
    """Name the host of a redirect, and not its path, which may hold a token."""
    try:
        parts = urlsplit(location[:2_000])
    except ValueError:
        return ""
    return f" to {parts.scheme}://{parts.netloc.rpartition('@')[2]}"[:MAX_SHOWN] if parts.netloc else ""


async def _read(response: httpcore.Response) -> bytes:
    """Read the rest of an answer, so that the connection can be used again. A long or slow rest is left."""
    read = b""
    with suppress(TimeoutError, httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException):
        async with asyncio.timeout(REST_SECONDS):
            async for part in response.aiter_stream():
                read += part
                if len(read) > MAX_ANSWER:
                    break
    return read
