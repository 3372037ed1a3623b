"""What the jobs of every peer do: each sets the bit of its number in Redis, so that the truth can be counted,
whatever the peer says. To run twice changes nothing here."""

import os
import signal
from functools import cache

from redis import Redis

RAN, KILLED = "bench.peers.ran", "bench.peers.killed"


@cache
def _client(_pid: int) -> Redis:
    return Redis.from_url(os.environ["REDIS_URL"])


def note(number: int) -> None:
    """A job with a negative number kills its worker in its first run, as a machine that loses its power would."""
    client = _client(os.getpid())
    if number < 0 and client.set(KILLED, 1, nx=True):
        os.killpg(os.getsid(0), signal.SIGKILL)  # the worker leads the session, with all processes of its pool
    client.setbit(RAN, abs(number), 1)


def ran() -> int:
    """Count the jobs that have run at least once."""
    return int(_client(os.getpid()).bitcount(RAN))


def has_killed() -> bool:
    return bool(_client(os.getpid()).exists(KILLED))


def forget() -> None:
    _client(os.getpid()).delete(RAN, KILLED)
