"""The files that `make up` keeps in the checkout: the directory `.local`, private to its owner. One is the lock
that allows one `make up`; the kernel frees it when its holder ends, however it ends."""

import fcntl
import hashlib
import json
import os
import pwd
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, TextIO

from harbor_refresh.local import LocalError

LARGEST_LOG = 20_000_000
#: Only root can write its parent.
_PUBLIC_HOME = Path("/var/lib/harbor-refresh")


def server_account() -> pwd.struct_passwd | None:
    """`nobody` if we are root, else None: ourselves."""
    return pwd.getpwnam("nobody") if os.geteuid() == 0 else None


def public_home() -> Path:
    """The directory that every account may read and only root may write; made if it is missing."""
    _PUBLIC_HOME.mkdir(exist_ok=True)
    _PUBLIC_HOME.chmod(0o755)
    return _PUBLIC_HOME


class Checkout:
    """One copy of the source on disk, and the paths under its `.local`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.local = root / ".local"
        self.logs, self.lock = self.local / "logs", self.local / "up.lock"
        self.redis = self.local / "redis"

    @property
    def postgres(self) -> Path:
        """If we are root, PostgreSQL runs as an account that cannot enter `.local`."""
        if server_account() is None:
            return self.local / "postgres"
        return public_home() / hashlib.sha256(os.fsencode(self.local.resolve())).hexdigest()[:16]

    def prepare(self) -> None:
        self.local.mkdir(mode=0o700, exist_ok=True)
        self.local.chmod(0o700)
        self.logs.mkdir(exist_ok=True)

    def fresh_log(self, name: str) -> Path:
        """Begin a log, which is empty and of its owner alone."""
        log = self.logs / f"{name}.log"
        log.unlink(missing_ok=True)
        log.touch(mode=0o600)
        return log

    def bound_logs(self) -> None:
        """Empty every log that has grown too large. Its process appends, so it continues at the new end."""
        for log in self.logs.glob("*.log"):
            if log.stat().st_size > LARGEST_LOG:
                os.truncate(log, 0)


class Holder(NamedTuple):
    """What the running `make up` writes about itself into the lock's file, which only its owner can read.

    `variables` are those of its environment that say where its servers are and how it uses them.
    """

    pid: int = 0
    admin: str = ""
    variables: Mapping[str, str] = {}


@contextmanager
def held(path: Path) -> Iterator[Callable[[str, Mapping[str, str]], None]]:
    """Hold the lock; LocalError with the holder's address if another process does. The value writes the address of
    the admin, and the variables."""
    with _open(path) as file:
        if first := _read(file, fcntl.LOCK_EX):
            where = f"at {first.admin}" if first.admin else "and is still starting"
            raise LocalError(
                f"Harbor Refresh already runs in this checkout, {where} (process {first.pid}). "
                "Use that one, or end it with Ctrl-C in its terminal."
            )

        def announce(admin: str, variables: Mapping[str, str]) -> None:
            file.seek(0)
            file.truncate()
            json.dump([os.getpid(), admin, dict(variables)], file)
            file.flush()

        announce("", {})
        yield announce


def holder(path: Path) -> Holder | None:
    """The running `make up` of this checkout, or None."""
    if not path.exists():
        return None
    with _open(path) as file:
        return _read(file, fcntl.LOCK_SH)


def _open(path: Path) -> TextIO:
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+")


def _read(file: TextIO, lock: int) -> Holder | None:
    """Take the lock and return None; or what its holder has written, which is nothing if it is just writing."""
    try:
        fcntl.flock(file, lock | fcntl.LOCK_NB)
        return None
    except BlockingIOError:
        with suppress(ValueError, TypeError):
            return Holder(*json.load(file))
    return Holder()
