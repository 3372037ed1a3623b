"""The files that `make up` keeps in the checkout: the directory `.local`, private to its owner."""

import hashlib
import os
import secrets
import shutil
from pathlib import Path

from harbor_refresh.local.accounts import public_home, server_account
from harbor_refresh.local.errors import LocalError

LARGEST_LOG = 20_000_000


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
        """Make the directories; LocalError if another account owns them."""
        try:
            self.local.mkdir(mode=0o700, exist_ok=True)
            self.local.chmod(0o700)
            self.logs.mkdir(exist_ok=True)
        except OSError as exc:
            raise LocalError(
                f"{exc.filename} cannot be written ({exc.strerror}): another user, perhaps root, "
                "started Harbor Refresh here before. Run it as they did, or remove the directory."
            ) from exc

    def secret_key(self) -> str:
        """Django's SECRET_KEY for this checkout, made at the first call and kept."""
        path = self.local / "secret_key"
        if not (path.exists() and path.read_text().strip()):
            path.touch(mode=0o600)
            path.write_text(secrets.token_urlsafe(64))
        return path.read_text().strip()

    def fresh_log(self, name: str) -> Path:
        """Begin a log; its old content becomes NAME.log.1."""
        log = self.logs / f"{name}.log"
        if log.exists():
            log.replace(_previous(log))
        log.touch(mode=0o600)
        return log

    def bound_logs(self) -> None:
        """Truncate every log that has grown too large, while its process writes to it.

        Logs are written in append mode, so a process continues at the new end of a truncated log. Lines that it
        writes between the copy and the truncation are lost.
        """
        for log in self.logs.glob("*.log"):
            if log.stat().st_size > LARGEST_LOG:
                shutil.copyfile(log, _previous(log))
                os.truncate(log, 0)


def _previous(log: Path) -> Path:
    return log.with_name(f"{log.name}.1")
