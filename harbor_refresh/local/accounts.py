"""The account that a server runs as, and the directories that this account can reach.

PostgreSQL refuses to run as root. If we are root, it runs as an unprivileged account, which often cannot enter the
checkout (a 0700 home directory), so its files are in a directory that root owns and every account may read. If we
are another account, the servers run as that account, in the checkout.
"""

import os
import pwd
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

from harbor_refresh.local.errors import LocalError

#: Only root can write its parent.
_PUBLIC_HOME = Path("/var/lib/harbor-refresh")


@dataclass(frozen=True)
class Account:
    """An unprivileged account as which root starts a server."""

    uid: int
    gid: int


def server_account(data: Path) -> Account | None:
    """The account for a server over `data`: None (ourselves) unless we are root.

    Data that another account owns keeps its owner, so that root can use an ordinary user's checkout.
    """
    if os.geteuid() != 0:
        return None
    if data.exists() and (owner := data.stat()).st_uid != 0:
        return Account(owner.st_uid, owner.st_gid)
    try:
        nobody = pwd.getpwnam("nobody")
    except KeyError as exc:
        raise LocalError(
            "PostgreSQL does not run as root, and there is no account `nobody` to run it as. "
            "Run this as an ordinary user, or set DATABASE_URL to a server of your own."
        ) from exc
    return Account(nobody.pw_uid, nobody.pw_gid)


def can_enter(directory: Path, account: Account | None) -> bool:
    """Whether the account can pass through `directory`. The kernel is asked, because its answer is exact."""
    if account is None:
        return True
    asked = subprocess.run(
        ["/bin/sh", "-c", 'test -x "$1"', "sh", str(directory)],
        user=account.uid,
        group=account.gid,
        extra_groups=[],
        cwd="/",
        check=False,
    )
    return asked.returncode == 0


def public_home() -> Path:
    """The directory that every account may read and only root may write; made if it is missing."""
    try:
        _PUBLIC_HOME.mkdir(exist_ok=True)
        made = _PUBLIC_HOME.lstat()
        if not stat.S_ISDIR(made.st_mode) or made.st_uid != 0 or made.st_mode & 0o022:
            raise PermissionError(0, "it is no directory that only root may write")
        _PUBLIC_HOME.chmod(0o755)
    except OSError as exc:
        raise LocalError(
            "As root, PostgreSQL runs as `nobody` and needs a directory that account can read, and "
            f"{_PUBLIC_HOME} could not be made ({exc.strerror}). Mend that, or set DATABASE_URL."
        ) from exc
    return _PUBLIC_HOME
