"""The files that `make up` keeps in the checkout: the directory `.local`, private to its owner. One is the lock
that allows one `make up`; the kernel frees it when its holder ends, however it ends. Another tells the commands
where the servers are; a `make up` that is killed leaves it behind, and the next one removes it."""

import fcntl
import hashlib
import json
import os
import pwd
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from harbor_refresh.local import LocalError

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
        self.variables = self.local / "up.json"

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

    def announce(self, variables: Mapping[str, str]) -> None:
        """Write the variables of the running `make up` that say where its servers are and how it uses them. An
        address may hold a password, so only the owner may read the file."""
        self.variables.touch(mode=0o600)
        self.variables.write_text(json.dumps(dict(variables)), encoding="utf-8")

    def announced(self) -> dict[str, str]:
        """Read them; empty if no `make up` runs, it is still starting, or it is another account's."""
        with suppress(OSError, ValueError):
            return dict(json.loads(self.variables.read_text(encoding="utf-8")))
        return {}

    def fresh_log(self, name: str) -> Path:
        """Begin a log, which is empty and of its owner alone."""
        log = self.logs / f"{name}.log"
        log.unlink(missing_ok=True)
        log.touch(mode=0o600)
        return log


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold the lock; LocalError if another process does."""
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600)) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LocalError(
                "Harbor Refresh already runs in this checkout. Use it, or end it with Ctrl-C in its terminal."
            ) from None
        yield
