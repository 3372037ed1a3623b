"""For the Makefile: `up` runs everything until a signal, `forget` removes the data and logs."""

import os
import shutil
import signal
import sys
from argparse import ArgumentParser
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


def main(*arguments: str) -> None:
    parser = ArgumentParser("python -m harbor_refresh.local", description=__doc__)
    parser.add_argument("command", choices=COMMANDS)
    try:
        COMMANDS[parser.parse_args(arguments).command](Checkout(ROOT))
    except (LocalError, OSError) as exc:
        sys.exit(str(exc))


if __name__ == "__main__":
    main(*sys.argv[1:])
