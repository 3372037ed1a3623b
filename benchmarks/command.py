"""`python -m benchmarks`: what each strategy costs, on embedded or on existing servers."""

import json
import os
import sys
from argparse import ArgumentTypeError
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from benchmarks.options import seconds
from harbor_refresh.executions.conf.startup import OURS
from harbor_refresh.executions.management.command import count
from harbor_refresh.executions.management.output import Failed, Misused

ROOT = Path(__file__).resolve().parents[1]

NUMBERS = {
    "executions": (100_000, 100_000_000, "how many"),
    "tasks-per-execution": (4, 10_000, "tasks of each"),
    "nodes": (2, 64, "node processes"),
    "workers": (2, 64, "Celery workers, where there is Celery"),
    "concurrency": (2, 64, "processes of each worker"),
}


class Command(BaseCommand):
    requires_system_checks = (OURS,)

    help = (
        "Measure on real servers: embedded ones, or a schema and a Redis database of its own on those that "
        "DATABASE_URL and REDIS_URL name. `strategies` runs every strategy in turn over the same rows."
    )

    def create_parser(self, *args: Any, **kwargs: Any) -> CommandParser:
        if find_spec("psutil") is None:
            raise Failed("the bench needs what the tests need. Type: pip install -r requirements-dev.txt")
        return super().create_parser(*args, **kwargs)

    def add_arguments(self, parser: CommandParser) -> None:
        from benchmarks import experiments
        from benchmarks.experiments.strategies import ORDER
        from benchmarks.servers import REDIS_DB

        add = parser.add_argument
        names = [*experiments.EXPERIMENTS]
        text = f"one of {', '.join(names)}; default: strategies"
        add("experiment", nargs="?", choices=names, default="strategies", help=text)
        for name, (default, most, text) in NUMBERS.items():
            shown = f"{text}; default: {default:,}"
            add(f"--{name}", type=count(1, most), default=default, metavar="N", help=shown)
        text = f"which, in this order; default: {','.join(ORDER)}"
        add("--strategies", type=one_of(ORDER), default=list(ORDER), metavar="A,B,…", help=text)
        text = "seconds each pass of a strategy may take; the rest is left undone; default: 60"
        add("--budget", type=seconds, default=60.0, metavar="S", help=text)
        add("--json", metavar="FILE", help="write the rows there; - is standard output, instead of the table")
        text = f"the Redis database to work in, on an existing server; it must be empty; default: {REDIS_DB}"
        add("--redis-db", type=count(0, 1_000_000), default=REDIS_DB, metavar="N", help=text)
        experiments.add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        chosen = {name: value for name, value in options.items() if name not in _DJANGO}
        chosen["json"] = writable(options["json"])
        chosen["command"] = " ".join(["python -m benchmarks", *sys.argv[1:]])
        chosen["database_options"] = settings.DATABASES["default"].get("OPTIONS", {}).get("options", "")
        exec_main(chosen)


#: Options of every command, which `benchmarks.main` does not take.
_DJANGO = {"verbosity", "settings", "pythonpath", "traceback", "no_color", "force_color", "skip_checks"}


def exec_main(options: dict[str, Any]) -> None:
    """Replace this process by `benchmarks.main`, whose settings are those of the measured servers. There is only
    one process, so that a signal reaches the process that has to clean up.

    Debug settings keep every query in memory, which would be measured; production settings are used instead.
    """
    if settings.DEBUG:
        os.environ["DJANGO_SETTINGS_MODULE"] = "settings.production"
    sys.stdout.flush()
    os.chdir(ROOT)
    os.execv(sys.executable, [sys.executable, "-m", "benchmarks.main", json.dumps(options)])  # noqa: S606


def writable(path: str | None) -> str | None:
    """Return the absolute path of a file that can be written; `benchmarks.main` overwrites it."""
    if path is None or path == "-":
        return path
    target = Path(path).absolute()
    was_there = target.exists()
    try:
        target.open("a", encoding="utf-8").close()
        if not was_there:
            target.unlink()
    except OSError as exc:
        raise Misused(f"--json {path}: {exc.strerror}. Name a file that can be written.") from exc
    return str(target)


def one_of(known: tuple[str, ...]) -> Callable[[str], list[str]]:
    def names(text: str) -> list[str]:
        chosen = [name.strip() for name in text.split(",") if name.strip()]
        unknown = [name for name in chosen if name not in known]
        if unknown or not chosen:
            raise ArgumentTypeError(f"got {text!r}, takes {', '.join(known)}, with commas between them")
        return list(dict.fromkeys(chosen))

    return names
