"""`python -m benchmarks.main OPTIONS`: the process that measures, started by `python -m benchmarks`.

It is a process of its own because Django reads its settings once: the command has the caller's settings, and this
process those of the measured servers. OPTIONS is the JSON of the options that the command has parsed and checked.

1. Start the servers, or make a schema and a database of our own on existing servers.
2. Take over the environment of those servers, set up Django and migrate.
3. Run the experiment. Each row is written when it is measured.
4. Remove everything from the servers, whatever happened. Exit 0; 1 if a server is down or a process ended early;
   128 plus its number after a signal.
"""

import json
import os
import signal
import sys
from argparse import Namespace
from types import FrameType
from typing import Any

from benchmarks.errors import BenchError
from benchmarks.servers import Servers
from harbor_refresh.local import LocalError


def main(words: list[str]) -> int:
    options = Namespace(**json.loads(words[0]))
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, _end)
    try:
        with Servers(
            redis_db=options.redis_db, database_options=options.database_options, command=options.command
        ) as servers:
            os.environ.clear()
            os.environ.update(servers.environ)
            measure(servers, options)
    except (BenchError, LocalError) as exc:
        sys.stderr.write(f"{exc}\n")
        return 1
    return 0


def measure(servers: Servers, options: Namespace) -> None:
    import django
    from django.core.management import call_command
    from django.db import connection

    django.setup()
    from benchmarks.experiments import experiment
    from benchmarks.screen import Screen

    screen = Screen(options.experiment, servers.about(), options.json)
    module = experiment(options.experiment)
    try:
        screen.say("Preparing the servers")
        call_command("migrate", verbosity=0)
        module.run(servers, options, screen)
    finally:
        connection.close()
        screen.end(module.COLUMNS)


def _end(number: int, _frame: FrameType | None) -> Any:
    """Raise, so that everything is cleaned up. Ignore further signals, so that they do not stop the cleaning."""
    for one in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(one, signal.SIG_IGN)
    sys.stderr.write("Interrupted; what was measured so far is kept.\n")
    raise SystemExit(128 + number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
