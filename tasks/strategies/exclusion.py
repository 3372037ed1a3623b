"""What keeps cycles apart: the lock of the `lock` design, and one cycle at a time in a worker of any pool."""

import fcntl
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from time import monotonic
from typing import IO, Any

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
    process dies, the lock ends NODE_TTL_SECONDS after its last renewal. Only its owner frees it. The lock that was
    proposed for Harbor had three faults: SETNX and EXPIRE were two commands, DEL did not check the owner, and a
    long cycle outlived the expiry."""
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


class WorkerMutex:
    """The processes of a worker share a file that its main process opened before it started them, and lock it for
    a cycle; the kernel frees the lock when the process dies. The threads of a process share that lock, so they
    have a second one."""

    def __init__(self) -> None:
        self._thread_lock = threading.Lock()
        self.file: IO[bytes] | None = None

    def open_file(self, **_: Any) -> None:
        """Open the file, in the main process. It has no name, so nothing is left when the worker ends."""
        self.file = tempfile.TemporaryFile()  # noqa: SIM115

    @contextmanager
    def try_lock(self) -> Iterator[bool]:
        """Yield True if this caller has the lock, at once. Outside a worker only threads share the lock."""
        if not self._thread_lock.acquire(blocking=False):
            yield False
            return
        try:
            yield self.file is None or _try_lock_file(self.file)
        finally:
            if self.file is not None:
                fcntl.lockf(self.file, fcntl.LOCK_UN)  # nothing, if another process has the lock
            self._thread_lock.release()


def _try_lock_file(file: IO[bytes]) -> bool:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


worker_mutex = WorkerMutex()
