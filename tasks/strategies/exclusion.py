"""What keeps cycles apart: the lock of the `lock` design, and one cycle at a time in a worker of any pool."""

import errno
import secrets
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import monotonic

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
    # by the clock of this process; the answer of Redis took less than half of the time, REDIS_TIMEOUT_SECONDS
    expires = monotonic() + pacing.NODE_TTL_SECONDS / 2

    def renew_until_done() -> None:
        nonlocal expires
        while not done.wait(pacing.HEARTBEAT_SECONDS):
            asked = monotonic()
            try:
                lock.extend(pacing.NODE_TTL_SECONDS, replace_ttl=True)
            except LockNotOwnedError:
                expires = 0.0
                return
            except QueueUnavailable:  # it stays ours for the time that was granted
                continue
            expires = asked + pacing.NODE_TTL_SECONDS

    renewer = threading.Thread(target=renew_until_done, name="lock", daemon=True)
    renewer.start()
    try:
        yield lambda: monotonic() < expires
    finally:
        done.set()
        renewer.join()
        with suppress(RedisError, QueueUnavailable):
            lock.release()


#: Made in the main process of a worker, from which its other processes are forked. The first byte keeps
#: the name out of the file system, so nothing is left when the worker ends. Only Linux has such names.
OF_THIS_WORKER = f"\0harbor_refresh.cycle.{secrets.token_hex(8)}"


@contextmanager
def only_cycle_of_this_worker() -> Iterator[bool]:
    """Yield True, at once, unless another process or thread of this worker runs a cycle: during a cycle a socket
    has the name. The kernel frees the name when the process dies. Outside a worker only threads share it."""
    with socket.socket(socket.AF_UNIX) as held:
        try:
            held.bind(OF_THIS_WORKER)
            is_free = True
        except OSError as exc:
            if exc.errno != errno.EADDRINUSE:
                raise
            is_free = False
        yield is_free
