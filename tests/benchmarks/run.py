"""One run of the benchmark: fill, bare loop, mark, drain, look at what is left.

Imported when Django is set up for the servers of the run, and not before.
"""

import argparse
import os
import time
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from executions.invariants import violations
from tests.benchmarks import bare_loop, cpu, data, verbs
from tests.benchmarks.crew import Crew
from tests.benchmarks.meters import RedisMeter, SqlMeter

SAMPLE = 20_000
STALLED_SECONDS = 60
LOOK_SECONDS = 0.1

Pids = dict[str, list[int | None]]


def run(options: argparse.Namespace, console: Console, directory: Path, servers: Pids) -> dict[str, Any]:
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
        figures["slow_commands_alone"] = verbs.slow_alone()
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
        "dearest_statements": [f"{calls:,} calls {spent:.1f} s {text}" for calls, spent, text in statements[:6]],
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
