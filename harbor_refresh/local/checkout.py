"""The files that `make up` keeps in the checkout: the directory `.local`, private to its owner."""

import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from harbor_refresh.local.errors import LocalError


@dataclass(frozen=True)
class Checkout:
    """One copy of the source on disk, and the paths under its `.local`."""

    root: Path

    @property
    def local(self) -> Path:
        return self.root / ".local"

    @property
    def logs(self) -> Path:
        return self.local / "logs"

    @property
    def lock(self) -> Path:
        return self.local / "up.lock"

    @property
    def postgres(self) -> Path:
        return self.local / "postgres"

    @property
    def redis(self) -> Path:
        return self.local / "redis"

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
        try:
            made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            if kept := path.read_text().strip():
                return kept
            made = os.open(path, os.O_WRONLY | os.O_TRUNC)
        with os.fdopen(made, "w") as file:
            key = secrets.token_urlsafe(64)
            file.write(key)
        return key
