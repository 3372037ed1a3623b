"""As whom a server runs, and the places that account can reach.

PostgreSQL refuses to run as root. When we are root it runs as an unprivileged account, which
often cannot enter the checkout (a 0700 home directory), so what it needs lives in a directory of
root's that everyone may read. Anyone else runs their servers as themselves, in the checkout.
"""

import os
import pwd
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

from harbor_refresh.local.errors import LocalError

_PUBLIC_HOMES = (Path("/var/lib/harbor-refresh"), Path("/var/tmp/harbor-refresh-root"))  # noqa: S108


@dataclass(frozen=True)
class Account:
    """An unprivileged account that root starts a server as."""

    uid: int
    gid: int


def server_account(data: Path) -> Account | None:
    """The account for a server over `data`: None (ourselves) unless we are root.

    Data that belongs to somebody keeps its owner, so that root can use an ordinary user's checkout.
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
    """Whether the account can pass through `directory`; asked of the kernel, which knows best."""
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
    """Root's directory that everyone may read and only root may write; made if it is missing.

    One in a world-writable place could have been put there by somebody else, so a directory that is
    not root's own, is a link, or can be written by others is refused.
    """
    problems = []
    for home in _PUBLIC_HOMES:
        try:
            home.mkdir(mode=0o755, exist_ok=True)
            home_stat = home.lstat()
        except OSError as exc:
            problems.append(f"{home}: {exc.strerror}")
            continue
        if stat.S_ISDIR(home_stat.st_mode) and home_stat.st_uid == os.geteuid() and not home_stat.st_mode & 0o022:
            home.chmod(0o755)
            return home
        problems.append(f"{home}: it is not a directory that only root can write")
    raise LocalError(
        "As root, PostgreSQL runs as `nobody` and needs a directory that account can read, but "
        f"none could be made ({'; '.join(problems)}). Mend one, or set DATABASE_URL."
    )
