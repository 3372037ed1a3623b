"""The lock of the `lock` design: one instance works a cycle, the others wait.

Taken by one atomic command, with an end; freed only by its owner; renewed by a thread for as long as the
cycle runs. docs/strategies.md tells what the original's lock did instead, and what came of it.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from time import monotonic

from redis.exceptions import LockError, LockNotOwnedError, RedisError
from redis.lock import Lock

from tasks.conf import refresh_settings
from tasks.queue.connection import redis_errors_translated, single
from tasks.queue.keys import Keys


class Hold:
    """A lock that is ours until `expires`, by this process's own clock, which stops for nobody.

    Counted from before the command that granted the time was sent: Redis lets go later than we do, never
    earlier. So a process that slept through its time knows it at the next look, before its thread does.
    """

    def __init__(self, lock: Lock, ttl: float) -> None:
        self._lock = lock
        self._ttl = ttl
        self._expires = 0.0

    @property
    def is_ours(self) -> bool:
        return monotonic() < self._expires

    def renew(self) -> None:
        """Redis out of reach is no loss yet: the time that was granted is still ours."""
        asked = monotonic()
        try:
            self._lock.extend(self._ttl, replace_ttl=True)
        except LockNotOwnedError:
            self._expires = 0
        except RedisError:
            return
        else:
            self._expires = asked + self._ttl

    def renew_until(self, done: threading.Event, interval: float) -> None:
        while not done.wait(interval) and self.is_ours:
            self.renew()


@contextmanager
def cycle_lock() -> Iterator[Hold | None]:
    """Wait for the lock and hold it. None if others held it for a whole interval: the next tick is there.

    What if the process dies: the lock ends REFRESH_NODE_TTL_SECONDS after its last renewal. What if it was
    lost: nothing is freed, for it is another's by now.
    """
    conf = refresh_settings()
    # thread_local=False: the thread that renews it must see the token of the one that took it
    lock = Lock(single(), Keys(conf.key_prefix).lock, timeout=conf.node_ttl, thread_local=False)
    with redis_errors_translated():
        taken = lock.acquire(blocking_timeout=max(conf.interval, 0))
    if not taken:
        yield None
        return
    hold = Hold(lock, conf.node_ttl)
    hold.renew()
    done = threading.Event()
    keeper = threading.Thread(target=hold.renew_until, args=(done, conf.heartbeat), name="lock", daemon=True)
    keeper.start()
    try:
        yield hold
    finally:
        done.set()
        keeper.join()
        with suppress(LockError, RedisError):
            lock.release()
