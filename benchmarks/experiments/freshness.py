"""From a report to the true status, under load: with the wake-up, and with the schedule alone.

1. Each execution is prepared with all tasks succeeded but the last, so each report of a last task changes a
   status.
2. Reporter processes report these tasks one by one at a steady rate, through the use case.
3. A watcher polls the database for statuses that have become true. The latency is the moment the change was seen
   minus the moment the use case was called.
"""

import time
from argparse import Namespace
from collections.abc import Sequence

from benchmarks.errors import BenchError
from benchmarks.options import with_defaults
from benchmarks.percentiles import summary
from benchmarks.ready_cluster import ReadyCluster, ready_cluster
from benchmarks.reporter import Assignment, Outcome
from benchmarks.reporters import deal, reporting
from benchmarks.rows import Row
from benchmarks.screen import Column, Screen, Show
from benchmarks.servers import Servers
from benchmarks.unfinished_executions import prepare
from benchmarks.watcher import POLL_SECONDS, Watcher

COLUMNS: Sequence[Column] = (
    ("rate", "reports/s"),
    ("achieved", "sent/s"),
    ("wake_up", "wake-up"),
    ("interval", "tick s"),
    ("p50", "p50 s"),
    ("p95", "p95 s"),
    ("p99", "p99 s"),
    ("max", "max s"),
    ("reports", "reports"),
    ("unseen", "unseen"),
    ("errors", "errors"),
)
WARM_UP_SECONDS = 3


def run(servers: Servers, options: Namespace, screen: Screen) -> list[Row]:
    options = with_defaults("freshness", options)
    rows = []
    for wake_up in (True, False):
        with ready_cluster(servers, options, wake_up=wake_up, interval=options.interval) as cluster:
            warm_up = Namespace(**vars(options) | {"seconds": WARM_UP_SECONDS})
            _measure(servers, warm_up, options.rates[0], cluster, lambda done: None)
            for rate in options.rates:
                name = f"{rate} reports/s, {'with' if wake_up else 'without'} the wake-up"
                with screen.stage(name, round(rate * options.seconds)) as show:
                    row = _measure(servers, options, rate, cluster, show)
                screen.keep(row)
                rows.append(row)
    return rows


def _measure(servers: Servers, options: Namespace, rate: int, cluster: ReadyCluster, show: Show) -> Row:
    tasks = options.tasks_per_execution
    pairs = prepare(round(rate * options.seconds), tasks, done=tasks - 1)
    dealt = deal([task for _, task in pairs], options.processes)
    assignments = [
        Assignment(part, options.budget, rate=rate / options.processes, wake_up=cluster.wake_up)
        for part in dealt
        if part
    ]
    with Watcher(servers.database_url) as watcher, reporting(assignments, servers) as running:
        deadline = running.begin + options.budget
        while time.monotonic() < deadline and not (running.over and len(watcher.seen) >= len(pairs)):
            watcher.wait()
            watcher.poll()
            show(len(watcher.seen))
            cluster.check()
        if not running.over:
            raise BenchError(f"The reporters did not end in {options.budget:g} s. Give more with --budget.")
        outcomes = running.outcomes()
    execution_of = {task: execution for execution, task in pairs}
    called = [
        (execution_of[task], moment)
        for assignment, outcome in zip(assignments, outcomes, strict=True)
        for task, moment in zip(assignment.tasks, outcome.calls, strict=False)
    ]
    latencies = [watcher.seen[execution] - moment for execution, moment in called if execution in watcher.seen]
    row = _row(rate, options, cluster, outcomes, running.begin)
    row.extra |= summary(latencies) | {"unseen": row.executions - len(latencies)}
    row.cut = len(latencies) < len(pairs)
    return row


def _row(rate: int, options: Namespace, cluster: ReadyCluster, outcomes: Sequence[Outcome], begin: float) -> Row:
    reports = sum(len(one.calls) for one in outcomes)
    took = max(one.ended for one in outcomes) - begin
    extra = {
        "rate": rate,
        "achieved": round(reports / took, 1),
        "wake_up": cluster.wake_up,
        "interval": cluster.interval,
        "resolution": POLL_SECONDS,
        "reports": reports,
        "errors": sum(one.errors for one in outcomes),
        "first_error": next((one.first_error for one in outcomes if one.errors), ""),
        "workers": options.workers,
        "concurrency": options.concurrency,
    }
    nodes = options.workers * options.concurrency
    return Row("claim+celery", nodes, reports, seconds=round(took, 3), extra=extra)
