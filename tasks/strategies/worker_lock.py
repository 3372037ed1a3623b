"""One cycle at a time in a worker, whatever its pool.

The processes of a worker share a file that its main process opened before it had any, and whoever works a
cycle holds a lock on it, which the kernel takes back when that process dies. Threads of one process share
that lock, so among themselves they have one of their own.
"""

import fcntl
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from celery import signals

_thread = threading.Lock()
_file: IO[bytes] | None = None


def open_file(**_: Any) -> None:
    """In the main process. The file has no name: nothing is left when the worker ends, however it ends."""
    global _file  # noqa: PLW0603
    _file = tempfile.TemporaryFile()  # noqa: SIM115


@contextmanager
def alone() -> Iterator[bool]:
    """True for one at a time; the others do not wait. Outside a worker there is nobody to share with."""
    if not _thread.acquire(blocking=False):
        yield False
        return
    try:
        if _file is None:
            yield True
        elif _locked(_file):
            try:
                yield True
            finally:
                fcntl.lockf(_file, fcntl.LOCK_UN)
        else:
            yield False
    finally:
        _thread.release()


def _locked(file: IO[bytes]) -> bool:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def connect() -> None:
    signals.celeryd_init.connect(open_file, dispatch_uid="alone.open_file")
