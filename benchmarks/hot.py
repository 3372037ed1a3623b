"""One hot execution: all of its tasks end at once, reported by many processes.

Harbor's own way is a refresh for each report, all of them on one row: "failed to refresh the status of the
execution after 5 retries", and no connections left. Here a mark that is there already is no second one.

Refreshes are counted by the server: how often anybody locked executions to refresh them.
"""

import time
from argparse import Namespace
from collections.abc import Sequence

from django.db import connection

from benchmarks.errors import BenchError
from benchmarks.ground import Ground
from benchmarks.meters import _statements_view
from benchmarks.options import chosen
from benchmarks.prepared import prepare
from benchmarks.reporter import Job
from benchmarks.reporters import Running, reporting, shares
from benchmarks.rows import Row
from benchmarks.screen import Column, Screen, Show
from benchmarks.shift import Shift, shift
from executions.models import Execution

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
LOOK_SECONDS = 0.01


def run(ground: Ground, options: Namespace, screen: Screen) -> list[Row]:
    options = chosen("hot", options)
    rows = []
    with shift(ground, options) as crew:
        for batch in options.batches:
            with screen.stage(f"{options.tasks:,} tasks, {batch:,} a call", 1) as show:
                row = _measure(ground, options, batch, crew, show)
            screen.keep(row)
            rows.append(row)
    return rows


def _measure(ground: Ground, options: Namespace, batch: int, crew: Shift, show: Show) -> Row:
    pairs = prepare(1, options.tasks)
    hot = pairs[0][0]
    jobs = [Job(tasks, options.budget, batch) for tasks in shares([task for _, task in pairs], options.processes)]
    before = _refreshes()
    with reporting(jobs, ground) as running:
        true_at = _when_true(hot, running, options.budget, crew)
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


def _when_true(hot: int, running: Running, budget: float, crew: Shift) -> float | None:
    """The moment the execution was seen to be Success; None if the budget ended before."""
    deadline = running.begin + budget
    true_at = None
    while not (running.over and true_at):
        if true_at is None and Execution.objects.filter(pk=hot, status="Success").exists():
            true_at = time.monotonic()
        if time.monotonic() > deadline:
            if not running.over:
                raise BenchError(f"The reporters did not end in {budget:g} s. Give more with --budget.")
            break
        crew.look()
        time.sleep(LOOK_SECONDS)
    return true_at


def _refreshes() -> int | None:
    """How often executions were locked for a refresh so far; None where statements are not counted."""
    view = _statements_view()
    if view is None:
        return None
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT coalesce(sum(calls), 0) FROM {view} WHERE query LIKE '%%FOR NO KEY UPDATE OF e%%' "  # noqa: S608 - a name from the catalogue
            "AND dbid = (SELECT oid FROM pg_database WHERE datname = current_database())"
        )
        return int(cursor.fetchone()[0])
