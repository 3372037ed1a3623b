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
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from harbor_refresh.local.servers import EmbeddedPostgres, EmbeddedRedis
from tests.benchmarks import bare_loop, cpu, verdict
from tests.benchmarks.crew import Crew

PARAMETERS = {"shared_buffers": "512MB", "max_wal_size": "4GB", "checkpoint_timeout": "15min"}
SAMPLE = 20_000
STALLED_SECONDS = 60
LOOK_SECONDS = 0.1
NUMBERS = (
    ("executions", 200_000, "how many"),
    ("tasks", 4, "tasks an execution"),
    ("workers", 2, "Celery workers"),
    ("concurrency", 2, "processes a worker"),
    ("bare-processes", 2, "processes of the bare loop"),
)

Pids = dict[str, list[int | None]]


def main() -> int:
    options = parse()
    console = Console()
    directory = Path(tempfile.mkdtemp(prefix="harbor-refresh-bench-"))
    directory.chmod(0o755)
    postgres = EmbeddedPostgres(directory / "postgres", parameters=PARAMETERS)
    redis = EmbeddedRedis(directory / "redis")
    try:
        console.print("Starting PostgreSQL and Redis")
        become_production(postgres.start().url, redis.start().url)
        give_precedence(redis.pid)
        pids = {"postgresql": [postgres.pid], "redis": [redis.pid]}
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


def run(
    options: argparse.Namespace, console: Console, directory: Path, servers: Pids
) -> dict[str, Any]:
    from django.conf import settings
    from django.db import connection

    from tests.benchmarks import data

    size = data.Size(options.executions, options.tasks, options.changed)
    sample = min(SAMPLE, size.stale)
    figures: dict[str, Any] = {
        "executions": size.executions,
        "tasks": size.tasks,
        "changed": size.changed,
        "workers": options.workers,
        "concurrency": options.concurrency,
    }
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as progress:

        def bar(text: str, total: int = size.executions) -> Any:
            task = progress.add_task(f"{text:<24}", total=total)
            return lambda done: progress.update(task, completed=done)

        data.fill(size, bar("Filling the tables"))
        show = bar("Bare loop", sample)
        figures["bare_loop_per_second"] = bare_loop.measure(
            os.environ["DATABASE_URL"], sample, options.bare_processes
        )
        show(sample)
        data.forget_refreshes(sample)
        data.mark_all(size, bar("Marking"))
        crew = Crew(directory, options.workers, options.concurrency)
        try:
            figures |= drain(crew, servers, size.executions, bar("Pipeline"))
        finally:
            crew.stop()
        show = bar("Checking", 1)
        figures |= aftermath(crew)
        show(1)
    figures["ratio"] = figures["pipeline_per_second"] / figures["bare_loop_per_second"]
    connection.close()
    figures["chunk"] = settings.REFRESH_CHUNK
    return figures


def drain(crew: Crew, servers: Pids, executions: int, show: Any) -> dict[str, Any]:
    """Start the crew and wait for the end, from the moment the backlog is first touched."""
    from tests.benchmarks.meters import RedisMeter, SqlMeter

    sql, redis = SqlMeter(), RedisMeter()
    sql.start()
    redis.start()
    crew.start()
    kinds = servers | crew.pids
    used = cpu.used(kinds)
    began = moved = before = time.monotonic()
    left = executions
    while left:
        if (fallen := crew.fallen()) or time.monotonic() - moved > STALLED_SECONDS:
            raise SystemExit(fallen or f"Nothing moved for {STALLED_SECONDS} s, {left:,} are left.")
        now = time.monotonic()
        sample = redis.sample()
        if sample.backlog == executions and not sample.in_flight:
            began, used = before, cpu.used(kinds)
        if sample.left != left:
            left, moved = sample.left, now
        show(executions - left)
        before = now
        time.sleep(LOOK_SECONDS)
    seconds = before - began
    busy = cpu.spent(used, cpu.used(kinds))
    statements = sql.statements()
    count = sum(calls for calls, _, _ in statements)
    figures: dict[str, Any] = {
        "pipeline_seconds": seconds,
        "pipeline_per_second": executions / seconds,
        "cpu_seconds": busy,
        "sql_statements": count,
        "sql_statements_per_execution": count / executions,
        "dearest_statements": [
            f"{calls:,} calls {spent:.1f} s {text}" for calls, spent, text in statements[:6]
        ],
        "redis_commands": redis.commands(),
        "redis_busy_seconds": redis.busy(),
        "redis_cpu_seconds": redis.cpu(),
        "slow_commands": redis.slow(),
    }
    deadline = time.monotonic() + 10
    while (last := redis.sample()).with_broker and time.monotonic() < deadline:
        time.sleep(LOOK_SECONDS)
    figures["longest_in_broker"] = {k: v for k, v in redis.longest.items() if k != "in_flight"}
    figures["most_in_flight"] = redis.longest["in_flight"]
    figures["left_with_broker"] = last.with_broker
    crew.stop()
    figures["transactions"] = sql.transactions()
    return figures


def aftermath(crew: Crew) -> dict[str, Any]:
    """What the tables and the logs say afterwards."""
    from django.db import connection

    from executions.invariants import violations

    broken = violations()
    with connection.cursor() as cursor:
        cursor.execute("SELECT sum(revision) FROM execution")
        (revisions,) = cursor.fetchone()
    succeeded, failed = crew.refreshed()
    return {
        "lost": sum(one.name == "K1" for one in broken),
        "violations": [str(one) for one in broken[:5]],
        "refreshes": succeeded,
        "refreshes_failed": failed,
        "revisions": int(revisions),
    }


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for name, default, text in NUMBERS:
        shown = f"{text}; default: {default}"
        parser.add_argument(f"--{name}", type=int, default=default, metavar="N", help=shown)
    parser.add_argument(
        "--changed", type=float, default=1.0, metavar="SHARE", help="out of date, default: 1.0"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    options = parser.parse_args()
    for name, _, _ in NUMBERS:
        if getattr(options, name.replace("-", "_")) < 1:
            parser.error(f"--{name} takes a whole number from 1")
    if (
        not 0 < options.changed <= 1
        or options.executions * options.changed < options.bare_processes
    ):
        parser.error("--changed takes a share above 0, up to 1")
    return options


if __name__ == "__main__":
    sys.exit(main())
