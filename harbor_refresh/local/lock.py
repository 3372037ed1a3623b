"""The lock that allows one `make up` in a checkout. The kernel frees it when its holder ends, however it ends."""

import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
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
    variables: Mapping[str, str] = field(default_factory=dict)


#: Takes the admin's address and the variables.
Announce = Callable[[str, Mapping[str, str]], None]


@contextmanager
def held(path: Path) -> Iterator[Announce]:
    """Hold the lock; LocalError with the holder's address if another process does. The value writes where this
    `make up` can be reached, for a second `make up`, `make password` and `manage.py`."""
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

        def announce(admin: str, variables: Mapping[str, str]) -> None:
            file.seek(0)
            file.truncate()
            json.dump(asdict(Holder(os.getpid(), admin, dict(variables))), file)
            file.flush()

        announce("", {})
        yield announce


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
