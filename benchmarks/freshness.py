"""From a report to the true status, under load: with the wake-up, and with the schedule alone.

1. Executions are prepared of which all tasks but the last have succeeded, so each report of the last one
   changes a status.
2. Reporters, each a process, report them one by one at a steady rate, through the use case.
3. A watcher asks the database what has become true. Latency is the moment it was seen minus the moment the
   use case was called.
"""

import time
from argparse import Namespace
from collections.abc import Sequence

from benchmarks.errors import BenchError
from benchmarks.ground import Ground
from benchmarks.options import chosen
from benchmarks.percentiles import summary
from benchmarks.prepared import prepare
from benchmarks.reporter import Job, Outcome
from benchmarks.reporters import reporting, shares
from benchmarks.rows import Row
from benchmarks.screen import Column, Screen, Show
from benchmarks.shift import Shift, shift
from benchmarks.watcher import LOOK_SECONDS, Watcher

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


def run(ground: Ground, options: Namespace, screen: Screen) -> list[Row]:
    options = chosen("freshness", options)
    rows = []
    for wake_up in (True, False):
        with shift(ground, options, wake_up=wake_up, interval=options.interval) as crew:
            warm_up = Namespace(**vars(options) | {"seconds": WARM_UP_SECONDS})
            _measure(ground, warm_up, options.rates[0], crew, lambda done: None)
            for rate in options.rates:
                name = f"{rate} reports/s, {'with' if wake_up else 'without'} the wake-up"
                with screen.stage(name, round(rate * options.seconds)) as show:
                    row = _measure(ground, options, rate, crew, show)
                screen.keep(row)
                rows.append(row)
    return rows


def _measure(ground: Ground, options: Namespace, rate: int, crew: Shift, show: Show) -> Row:
    tasks = options.tasks_per_execution
    pairs = prepare(round(rate * options.seconds), tasks, done=tasks - 1)
    dealt = shares([task for _, task in pairs], options.processes)
    jobs = [
        Job(part, options.budget, rate=rate / options.processes, wake_up=crew.wake_up) for part in dealt if part
    ]
    with Watcher(ground.database_url) as watcher, reporting(jobs, ground) as running:
        deadline = running.begin + options.budget
        while time.monotonic() < deadline and not (running.over and len(watcher.seen) >= len(pairs)):
            watcher.wait()
            watcher.look()
            show(len(watcher.seen))
            crew.look()
        if not running.over:
            raise BenchError(f"The reporters did not end in {options.budget:g} s. Give more with --budget.")
        outcomes = running.outcomes()
    execution_of = {task: execution for execution, task in pairs}
    called = [
        (execution_of[task], moment)
        for job, outcome in zip(jobs, outcomes, strict=True)
        for task, moment in zip(job.tasks, outcome.calls, strict=False)
    ]
    latencies = [watcher.seen[execution] - moment for execution, moment in called if execution in watcher.seen]
    row = _row(rate, options, crew, outcomes, running.begin)
    row.extra |= summary(latencies) | {"unseen": row.executions - len(latencies)}
    row.cut = len(latencies) < len(pairs)
    return row


def _row(rate: int, options: Namespace, crew: Shift, outcomes: Sequence[Outcome], begin: float) -> Row:
    reports = sum(len(one.calls) for one in outcomes)
    took = max(one.ended for one in outcomes) - begin
    extra = {
        "rate": rate,
        "achieved": round(reports / took, 1),
        "wake_up": crew.wake_up,
        "interval": crew.interval,
        "resolution": LOOK_SECONDS,
        "reports": reports,
        "errors": sum(one.errors for one in outcomes),
        "first_error": next((one.first_error for one in outcomes if one.errors), ""),
        "workers": options.workers,
        "concurrency": options.concurrency,
    }
    nodes = options.workers * options.concurrency
    return Row("claim+celery", nodes, reports, seconds=round(took, 3), extra=extra)
