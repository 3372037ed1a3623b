"""`python -m harbor_refresh.local up | password | forget`, for the Makefile.

`up` runs everything until a signal. `password` sets a new password for the admin account of a running `up`.
`forget` removes the data and logs. It exits with 0 on success, 1 on failure, 2 on misuse.
"""

import os
import shutil
import signal
import sys
from collections.abc import Callable

from harbor_refresh.local import LocalError
from harbor_refresh.local.checkout import Checkout, held, holder
from harbor_refresh.local.postgres import EmbeddedPostgres
from harbor_refresh.local.process import die_with_parent
from harbor_refresh.local.program import ROOT, SETTINGS
from harbor_refresh.local.up import USERNAME, Up


def up(checkout: Checkout) -> None:
    """Run everything; as a child of make, also end when make is killed."""
    if "MAKELEVEL" in os.environ:
        die_with_parent(signal.SIGTERM)
    Up(checkout).run()


def password(checkout: Checkout) -> None:
    """Become `manage.py changepassword` on the database of the running `up`."""
    running = holder(checkout.lock)
    if running is None or not running.variables:
        raise LocalError(
            "Harbor Refresh does not run in this checkout, so there is no database to ask. Start "
            "it with `make up`, then type `make password` in another terminal."
        )
    if not sys.stdin.isatty():
        raise LocalError("`make password` asks for the new password, so type it in a terminal.")
    environ = {**os.environ, **running.variables, "DJANGO_SETTINGS_MODULE": SETTINGS}
    os.chdir(checkout.root)
    os.execve(sys.executable, [sys.executable, "manage.py", "changepassword", USERNAME], environ)  # noqa: S606


def forget(checkout: Checkout) -> None:
    """Remove everything that `up` has made; refused while it runs."""
    checkout.prepare()
    with held(checkout.lock):
        EmbeddedPostgres(checkout.postgres).discard()
        shutil.rmtree(checkout.local)


COMMANDS: dict[str, Callable[[Checkout], None]] = {"up": up, "password": password, "forget": forget}


def main(arguments: list[str]) -> int:
    if len(arguments) != 1 or arguments[0] not in COMMANDS:
        sys.stderr.write(f"usage: python -m harbor_refresh.local {' | '.join(COMMANDS)}\n")
        return 2
    try:
        COMMANDS[arguments[0]](Checkout(ROOT))
    except (LocalError, OSError) as exc:
        sys.stderr.write(f"{exc}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
