"""Kombu's Redis transport, with one fault of its 5.7 mended.

A worker whose connection breaks while it holds unacknowledged messages puts them back as it closes its
channel. If the connection is closed by then, kombu asks a None for its host name; the AttributeError is no
connection error, nobody expects it, and the worker ends. One restart of Redis in five did that to us
(tests/faults/test_a_redis_that_fails.py). Said as the connection error it is, the worker reconnects, and
the messages come back after the visibility timeout.
"""

from typing import Any

from kombu.transport import TRANSPORT_ALIASES, redis


class Channel(redis.Channel):
    def _connparams(self, asynchronous: bool = False) -> Any:
        if self.connection.client is None:
            raise ConnectionError("the connection to the broker is closed")
        return super()._connparams(asynchronous=asynchronous)  # type: ignore[misc]


class Transport(redis.Transport):
    Channel = Channel


def mend() -> None:
    """Make `redis://` and `rediss://` mean the mended transport."""
    for scheme in ("redis", "rediss"):
        TRANSPORT_ALIASES[scheme] = f"{__name__}:Transport"
