"""Bulk reports through the use case: how many a second are committed, marks included.

No worker runs, so reporting alone is measured.
"""

import time
from argparse import Namespace
from collections.abc import Sequence

from benchmarks.errors import BenchError
from benchmarks.meters import RedisMeter, SqlMeter
from benchmarks.options import with_defaults
from benchmarks.reporter import Assignment
from benchmarks.reporters import reporting, split
from benchmarks.rows import Row
from benchmarks.screen import Column, Screen, Show
from benchmarks.servers import Servers
from benchmarks.unfinished_executions import prepare
from harbor_refresh.tasks.queue import execution_queue

COLUMNS: Sequence[Column] = (
    ("batch", "reports a call"),
    ("processes", "reporters"),
    ("reports", "reports"),
    ("seconds", "s"),
    ("reports_per_second", "reports/s"),
    ("executions", "executions"),
    ("marked", "marked"),
    ("redis_commands", "Redis commands"),
    ("sql_statements", "SQL statements"),
    ("errors", "errors"),
)


def run(servers: Servers, options: Namespace, screen: Screen) -> list[Row]:
    options = with_defaults("reports", options)
    rows = []
    for batch in options.batches:
        reports = options.executions * options.tasks_per_execution
        with screen.stage(f"{reports:,} reports, {batch:,} a call", 1) as show:
            row = _measure(servers, options, batch, show)
        screen.keep(row)
        rows.append(row)
    return rows


def _measure(servers: Servers, options: Namespace, batch: int, show: Show) -> Row:
    pairs = prepare(options.executions, options.tasks_per_execution)
    dealt = split([task for _, task in pairs], options.processes)
    assignments = [Assignment(tasks, options.budget, batch, wake_up=False) for tasks in dealt if tasks]
    marked_before = execution_queue().stats().backlog
    redis, sql = RedisMeter(servers.redis_url), SqlMeter()
    with reporting(assignments, servers) as running:
        redis.start()
        sql.start()
        deadline = running.begin + options.budget
        while not running.over:
            if time.monotonic() > deadline + 10:
                raise BenchError(f"The reporters did not end in {options.budget:g} s. Give more with --budget.")
            time.sleep(0.05)
        outcomes = running.outcomes()
    redis.stop()
    sql.stop()
    redis.close()
    show(1)
    seconds = max(one.ended for one in outcomes) - running.begin
    applied = sum(one.applied for one in outcomes)
    return Row(
        "claim+celery",
        options.processes,
        options.executions,
        seconds=round(seconds, 3),
        redis_commands=redis.commands,
        redis_cpu_seconds=redis.cpu_seconds,
        sql_statements=sql.count if sql.counted == "statements" else None,
        cut=applied < len(pairs),
        extra={
            "batch": batch,
            "processes": options.processes,
            "tasks": options.tasks_per_execution,
            "reports": applied,
            "reports_per_second": round(applied / seconds, 1),
            "marked": execution_queue().stats().backlog - marked_before,
            "errors": sum(one.errors for one in outcomes),
            "first_error": next((one.first_error for one in outcomes if one.errors), ""),
        },
    )
