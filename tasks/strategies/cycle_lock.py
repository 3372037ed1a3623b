"""The lock of the `lock` design: one instance works a cycle, the other instances wait.

One atomic command takes it, with an end. Only its owner frees it. A thread renews it while the cycle runs. The
lock that was proposed for Harbor had three faults: SETNX and EXPIRE were two commands, DEL did not check the
owner, and a long cycle outlived the expiry.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from time import monotonic

from redis.exceptions import LockError, LockNotOwnedError, RedisError
from redis.lock import Lock

from harbor_refresh.tasks import pacing
from harbor_refresh.tasks.conf import refresh_settings
from harbor_refresh.tasks.queue.connection import redis_errors_translated, single
from harbor_refresh.tasks.queue.keys import Keys


class HeldLock:
    """A lock that is ours until `expires`, by the monotonic clock of this process. The time counts from before the
    command that granted it was sent, so it ends here before it ends in Redis."""

    def __init__(self, lock: Lock, ttl: float) -> None:
        self._lock = lock
        self._ttl = ttl
        self._expires = 0.0

    @property
    def is_ours(self) -> bool:
        return monotonic() < self._expires

    def renew(self) -> None:
        """Renew the lock. If Redis cannot be reached, it stays ours for the time that was granted."""
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
def cycle_lock() -> Iterator[HeldLock | None]:
    """Wait for the lock and hold it. Yield None after an interval, because then the next tick comes. If the
    process dies, the lock ends NODE_TTL_SECONDS after its last renewal. A lost lock is not freed, because another
    instance may hold it by now."""
    conf = refresh_settings()
    # thread_local=False: the renewing thread must see the token of the thread that took the lock
    lock = Lock(single(), Keys(conf.key_prefix).lock, timeout=pacing.NODE_TTL_SECONDS, thread_local=False)
    with redis_errors_translated():
        taken = lock.acquire(blocking_timeout=max(conf.interval, 0))
    if not taken:
        yield None
        return
    held = HeldLock(lock, pacing.NODE_TTL_SECONDS)
    held.renew()
    done = threading.Event()
    renewer = threading.Thread(
        target=held.renew_until, args=(done, pacing.HEARTBEAT_SECONDS), name="lock", daemon=True
    )
    renewer.start()
    try:
        yield held
    finally:
        done.set()
        renewer.join()
        with suppress(LockError, RedisError):
            lock.release()
