"""Measure the whole pipeline against a bare loop, on servers of its own: `make bench`.

1. Start PostgreSQL and Redis as one would run them, and fill the tables.
2. Bare loop: Harbor's four statements an execution, on a sample of the same rows; then undo it.
3. Mark every execution; start real workers and a beat; wait until queue and processing are empty.
4. Print what was measured, and whether every line of `verdict` holds. Exit 1 if one does not.
"""

import argparse
import contextlib
import json
import os
import secrets
import shutil
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from harbor_refresh.local.servers import EmbeddedPostgres, EmbeddedRedis
from tests.benchmarks import verdict

PARAMETERS = {"shared_buffers": "512MB", "max_wal_size": "4GB", "checkpoint_timeout": "15min"}
#: A rewrite of the append-only file forks, and each page written after that is copied first: commands take
#: 5 to 9 ms then that otherwise take 0.5. That is Redis's price and not ours, so it does not happen meanwhile.
NO_REWRITE = ("--auto-aof-rewrite-percentage", "0")
NUMBERS = (
    ("executions", 200_000, "how many"),
    ("tasks", 4, "tasks an execution"),
    ("workers", 2, "Celery workers"),
    ("concurrency", 2, "processes a worker"),
    ("bare-processes", 1, "processes of the bare loop, each on a connection of its own"),
)


def main() -> int:
    options = parse()
    console = Console()
    directory = Path(tempfile.mkdtemp(prefix="harbor-refresh-bench-"))
    directory.chmod(0o755)
    postgres = EmbeddedPostgres(directory / "postgres", parameters=PARAMETERS)
    redis = EmbeddedRedis(directory / "redis", extra=NO_REWRITE)
    try:
        console.print("Starting PostgreSQL and Redis")
        become_production(postgres.start().url, redis.start().url)
        give_precedence(redis.pid)
        from tests.benchmarks.run import run

        pids: dict[str, list[int | None]] = {"postgresql": [postgres.pid], "redis": [redis.pid]}
        figures = run(options, console, directory, pids)
    finally:
        redis.discard()
        postgres.discard()
        shutil.rmtree(directory, ignore_errors=True)
    judged = verdict.lines(figures)
    verdict.show(console, figures, judged)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    return 0 if all(line.holds for line in judged) else 1


def give_precedence(pid: int | None) -> None:
    """Let Redis run when it can, as on a host of its own, if we are allowed to.

    Its slow log counts the time that passes: on two cores with more workers than cores it would
    tell of commands that waited for a core, and not of slow commands.
    """
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, pid or 0, -15)


def become_production(database_url: str, redis_url: str) -> None:
    """This process and those it starts use these servers, with the settings of production."""
    for name in list(os.environ):
        if name.startswith(("EXECUTION_STATUS_", "CELERY_", "_REDIS_URL")):
            del os.environ[name]
    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "settings.production",
        "DATABASE_URL": database_url,
        "REDIS_URL": redis_url,
        "SECRET_KEY": secrets.token_urlsafe(64),
        "ALLOWED_HOSTS": "localhost",
    }
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for name, default, text in NUMBERS:
        shown = f"{text}; default: {default}"
        parser.add_argument(f"--{name}", type=int, default=default, metavar="N", help=shown)
    parser.add_argument("--changed", type=float, default=1.0, metavar="SHARE", help="out of date, default: 1.0")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    options = parser.parse_args()
    for name, _, _ in NUMBERS:
        if getattr(options, name.replace("-", "_")) < 1:
            parser.error(f"--{name} takes a whole number from 1")
    if not 0 < options.changed <= 1 or options.executions * options.changed < options.bare_processes:
        parser.error("--changed takes a share above 0, up to 1")
    return options


if __name__ == "__main__":
    sys.exit(main())
