"""The lock that allows one `make up` in a checkout. The kernel frees it when its holder ends, however it ends."""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TextIO

from harbor_refresh.local.errors import LocalError


@dataclass(frozen=True)
class Holder:
    """What the running `make up` writes about itself into the lock's file, which only its owner can read.

    `variables` are those of its environment that say where its servers are and how it uses them.
    """

    pid: int = 0
    admin: str = ""
    database_url: str = ""
    variables: dict[str, str] = field(default_factory=dict)


class UpLock:
    """The lock while it is held."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._holder = Holder(pid=os.getpid())
        self._write()

    def announce(self, *, admin: str, database_url: str, variables: Mapping[str, str] | None = None) -> None:
        """Write where this `make up` can be reached, for a second `make up`, `make password` and `manage.py`."""
        self._holder = replace(
            self._holder, admin=admin, database_url=database_url, variables=dict(variables or {})
        )
        self._write()

    def _write(self) -> None:
        self._file.seek(0)
        self._file.truncate()
        json.dump(asdict(self._holder), self._file)
        self._file.flush()


@contextmanager
def held(path: Path) -> Iterator[UpLock]:
    """Hold the lock; LocalError with the holder's address if another process does."""
    with _open(path) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            first = _read(file)
            where = f"at {first.admin}" if first.admin else "and is still starting"
            raise LocalError(
                f"Harbor Refresh already runs in this checkout, {where} (process {first.pid}). "
                "Use that one, or end it with Ctrl-C in its terminal."
            ) from None
        yield UpLock(file)


def holder(path: Path) -> Holder | None:
    """The running `make up` of this checkout, or None."""
    if not path.exists():
        return None
    with _open(path) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return _read(file)
    return None


def _open(path: Path) -> TextIO:
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+")


def _read(file: TextIO) -> Holder:
    """Read the file. Values are empty if the holder is just writing it."""
    try:
        file.seek(0)
        return Holder(**json.load(file))
    except (ValueError, TypeError):
        return Holder()
