"""The account that PostgreSQL runs as, and a directory that this account can read.

PostgreSQL refuses to run as root. If we are root, it runs as `nobody`, which often cannot enter the checkout (a
0700 home directory). So its programs and the data of `make up` are in a directory that root owns and every account
may read. If we are another account, PostgreSQL runs as that account, in the checkout.
"""

import os
import pwd
from pathlib import Path

from harbor_refresh.local.errors import LocalError

#: Only root can write its parent.
_PUBLIC_HOME = Path("/var/lib/harbor-refresh")


def server_account() -> pwd.struct_passwd | None:
    """`nobody` if we are root, else None: ourselves."""
    return pwd.getpwnam("nobody") if os.geteuid() == 0 else None


def public_home() -> Path:
    """The directory that every account may read and only root may write; made if it is missing."""
    try:
        _PUBLIC_HOME.mkdir(exist_ok=True)
        _PUBLIC_HOME.chmod(0o755)
    except OSError as exc:
        raise LocalError(
            "As root, PostgreSQL runs as `nobody` and needs a directory that account can read, and "
            f"{_PUBLIC_HOME} could not be made ({exc.strerror}). Mend that, or set DATABASE_URL."
        ) from exc
    return _PUBLIC_HOME
