"""`python -m harbor_refresh.local up | forget`, for the Makefile.

`up` runs everything until a signal. `forget` removes the data and logs. It exits with 0 on success, 1 on failure,
2 on misuse.
"""

import os
import shutil
import signal
import sys
from collections.abc import Callable

from harbor_refresh.local import LocalError
from harbor_refresh.local.checkout import Checkout, held
from harbor_refresh.local.postgres import EmbeddedPostgres
from harbor_refresh.local.process import die_with_parent
from harbor_refresh.local.program import ROOT
from harbor_refresh.local.up import Up


def up(checkout: Checkout) -> None:
    """Run everything; as a child of make, also end when make is killed."""
    if "MAKELEVEL" in os.environ:
        die_with_parent(signal.SIGTERM)
    Up(checkout).run()


def forget(checkout: Checkout) -> None:
    """Remove everything that `up` has made; refused while it runs."""
    checkout.prepare()
    with held(checkout.lock):
        EmbeddedPostgres(checkout.postgres).discard()
        shutil.rmtree(checkout.local)


COMMANDS: dict[str, Callable[[Checkout], None]] = {"up": up, "forget": forget}


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
