"""`python -m benchmarks.main OPTIONS`: the engine behind `manage.py bench`.

A process of its own, because Django reads its settings once: the command has the caller's, this process
those of the servers that are measured. OPTIONS is the JSON of what the command has parsed and checked.

1. Open the ground: servers, or corners of servers that were given.
2. Become a process of that ground: its environment, Django, its migrations.
3. Run the experiment; rows are written as they come.
4. Whatever happened, the ground is cleared. Exit 0; 1 if a server is away or a node fell; 130 and the like
   after a signal.
"""

import json
import os
import signal
import sys
from argparse import Namespace
from types import FrameType
from typing import Any

from benchmarks.errors import BenchError
from benchmarks.ground import Ground
from harbor_refresh.local.servers import LocalError


def main(words: list[str]) -> int:
    options = Namespace(**json.loads(words[0]))
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, _end)
    try:
        with Ground(
            redis_db=options.redis_db, database_options=options.database_options, command=options.command
        ) as ground:
            os.environ.clear()
            os.environ.update(ground.environ)
            measure(ground, options)
    except (BenchError, LocalError) as exc:
        sys.stderr.write(f"{exc}\n")
        return 1
    return 0


def measure(ground: Ground, options: Namespace) -> None:
    import django
    from django.core.management import call_command
    from django.db import connection

    django.setup()
    from benchmarks.experiments import experiment
    from benchmarks.screen import Screen

    screen = Screen(options.experiment, ground.about(), options.json)
    module = experiment(options.experiment)
    try:
        screen.say("Preparing the servers")
        call_command("migrate", verbosity=0)
        module.run(ground, options, screen)
    finally:
        connection.close()
        screen.end(module.COLUMNS)


def _end(number: int, _frame: FrameType | None) -> Any:
    """An exception, so that everything is tidied up; a second signal does not disturb the tidying."""
    for one in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(one, signal.SIG_IGN)
    sys.stderr.write("Interrupted; what was measured so far is kept.\n")
    raise SystemExit(128 + number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
