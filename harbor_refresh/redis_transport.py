"""The mended transport for Redis (tasks/broker/redis_transport.py), for all connections of a process. Those of a
Celery app that has joined have it already."""

from kombu.transport import TRANSPORT_ALIASES

from harbor_refresh.tasks.broker import redis_transport


def register_transport() -> None:
    """Make `redis://`, `rediss://` and `sentinel://` mean the mended transport."""
    for scheme in ("redis", "rediss"):
        TRANSPORT_ALIASES[scheme] = f"{redis_transport.__name__}:Transport"
    TRANSPORT_ALIASES["sentinel"] = f"{redis_transport.__name__}:SentinelTransport"
