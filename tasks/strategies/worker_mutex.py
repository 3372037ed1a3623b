"""One cycle at a time in a worker, whatever its pool.

The processes of a worker share a file that its main process opened before it started them, and lock it for a
cycle; the kernel frees the lock when the process dies. The threads of a process share that lock, so they have a
second one.
"""

import fcntl
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any


class WorkerMutex:
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
