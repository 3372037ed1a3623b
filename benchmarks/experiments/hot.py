"""One hot execution: all of its tasks end at once, reported by many processes.

Harbor refreshes once for each report, all of them on one row: "failed to refresh the status of the execution after
5 retries", and no connections left. Here an execution that is marked already is not marked twice.

The server counts the refreshes: how often executions were locked to be refreshed.
"""

import time
from argparse import Namespace
from collections.abc import Sequence

from django.db import connection

from benchmarks.errors import BenchError
from benchmarks.meters import statements_view
from benchmarks.options import with_defaults
from benchmarks.ready_cluster import ReadyCluster, ready_cluster
from benchmarks.reporter import Assignment
from benchmarks.reporters import Reporters, deal, reporting
from benchmarks.rows import Row
from benchmarks.screen import Column, Screen, Show
from benchmarks.servers import Servers
from benchmarks.unfinished_executions import prepare
from harbor_refresh.executions.models import Execution

COLUMNS: Sequence[Column] = (
    ("batch", "reports a call"),
    ("tasks", "tasks"),
    ("processes", "reporters"),
    ("calls", "calls"),
    ("errors", "errors"),
    ("refreshes", "refreshes"),
    ("revisions", "revisions"),
    ("seconds_reporting", "s to report"),
    ("seconds_till_true", "s more until true"),
    ("reports_per_second", "reports/s"),
)
POLL_SECONDS = 0.01


def run(servers: Servers, options: Namespace, screen: Screen) -> list[Row]:
    options = with_defaults("hot", options)
    rows = []
    with ready_cluster(servers, options) as cluster:
        for batch in options.batches:
            with screen.stage(f"{options.tasks:,} tasks, {batch:,} a call", 1) as show:
                row = _measure(servers, options, batch, cluster, show)
            screen.keep(row)
            rows.append(row)
    return rows


def _measure(servers: Servers, options: Namespace, batch: int, cluster: ReadyCluster, show: Show) -> Row:
    pairs = prepare(1, options.tasks)
    hot = pairs[0][0]
    dealt = deal([task for _, task in pairs], options.processes)
    assignments = [Assignment(tasks, options.budget, batch) for tasks in dealt]
    before = _refreshes()
    with reporting(assignments, servers) as running:
        true_at = _when_true(hot, running, options.budget, cluster)
        outcomes = running.outcomes()
    show(1)
    reported = max(one.ended for one in outcomes)
    calls = sum(len(one.calls) for one in outcomes)
    applied = sum(one.applied for one in outcomes)
    after = _refreshes()
    extra = {
        "tasks": options.tasks,
        "processes": options.processes,
        "batch": batch,
        "calls": calls,
        "errors": sum(one.errors for one in outcomes),
        "first_error": next((one.first_error for one in outcomes if one.errors), ""),
        "refreshes": None if before is None or after is None else after - before,
        "revisions": Execution.objects.get(pk=hot).revision,
        "seconds_reporting": round(reported - running.begin, 3),
        "seconds_till_true": None if true_at is None else round(max(0.0, true_at - reported), 3),
        "reports_per_second": round(applied / (reported - running.begin), 1),
        "workers": options.workers,
        "concurrency": options.concurrency,
    }
    nodes = options.workers * options.concurrency
    seconds = None if true_at is None else round(true_at - running.begin, 3)
    return Row("claim+celery", nodes, 1, seconds=seconds, cut=applied < options.tasks, extra=extra)


def _when_true(hot: int, running: Reporters, budget: float, cluster: ReadyCluster) -> float | None:
    """Return the moment the execution was seen to be Success; None if the budget ended first."""
    deadline = running.begin + budget
    true_at = None
    while not (running.over and true_at):
        if true_at is None and Execution.objects.filter(pk=hot, status="Success").exists():
            true_at = time.monotonic()
        if time.monotonic() > deadline:
            if not running.over:
                raise BenchError(f"The reporters did not end in {budget:g} s. Give more with --budget.")
            break
        cluster.check()
        time.sleep(POLL_SECONDS)
    return true_at


def _refreshes() -> int | None:
    """Count how often executions were locked for a refresh so far; None where statements are not counted."""
    view = statements_view()
    if view is None:
        return None
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT coalesce(sum(calls), 0) FROM {view} WHERE query LIKE '%%FOR NO KEY UPDATE OF e%%' "  # noqa: S608 - a name from the catalogue
            "AND dbid = (SELECT oid FROM pg_database WHERE datname = current_database())"
        )
        return int(cursor.fetchone()[0])
