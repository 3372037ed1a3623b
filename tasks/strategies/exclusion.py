"""What keeps cycles apart: the lock of the `lock` design, and one cycle at a time in a worker of any pool."""

import fcntl
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import monotonic
from typing import IO, Any

from redis.exceptions import LockNotOwnedError, RedisError
from redis.lock import Lock

from harbor_refresh.executions.errors import QueueUnavailable
from harbor_refresh.tasks.conf import pacing, refresh_settings
from harbor_refresh.tasks.queue.connection import single
from harbor_refresh.tasks.queue.keys import Keys


@contextmanager
def cycle_lock() -> Iterator[Callable[[], bool] | None]:
    """Wait for the lock and hold it: yield what tells whether it is still ours. Yield None after an interval,
    because then the next tick comes. A thread renews it; if the process dies, the lock ends NODE_TTL_SECONDS after
    its last renewal. Only its owner frees it. The lock that was proposed for Harbor had three faults: SETNX and
    EXPIRE were two commands, DEL did not check the owner, and a long cycle outlived the expiry."""
    conf = refresh_settings()
    # thread_local=False: the renewing thread must see the token of the thread that took the lock
    lock = Lock(single(), Keys(conf.key_prefix).lock, timeout=pacing.NODE_TTL_SECONDS, thread_local=False)
    taken = lock.acquire(blocking_timeout=max(conf.interval, 0))
    if not taken:
        yield None
        return
    done = threading.Event()
    # by the clock of this process, from before Redis was asked; unknown until the first renewal
    expires = 0.0

    def renew() -> None:
        nonlocal expires
        asked = monotonic()
        try:
            lock.extend(pacing.NODE_TTL_SECONDS, replace_ttl=True)
        except LockNotOwnedError:
            expires = 0.0
        except QueueUnavailable:  # it stays ours for the time that was granted
            return
        else:
            expires = asked + pacing.NODE_TTL_SECONDS

    def renew_until_done() -> None:
        while expires and not done.wait(pacing.HEARTBEAT_SECONDS):
            renew()

    def is_ours() -> bool:
        return monotonic() < expires

    renew()
    renewer = threading.Thread(target=renew_until_done, name="lock", daemon=True)
    renewer.start()
    try:
        yield is_ours
    finally:
        done.set()
        renewer.join()
        with suppress(RedisError, QueueUnavailable):
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
