"""Throughput of `claim+celery` by the number of workers, all on one machine."""

import os
from argparse import Namespace
from collections.abc import Sequence

from benchmarks import stale_executions
from benchmarks.experiments.strategies import CELERY, measure_cluster
from benchmarks.rows import Row
from benchmarks.screen import Column, Screen
from benchmarks.servers import Servers

COLUMNS: Sequence[Column] = (
    ("workers", "workers"),
    ("concurrency", "processes each"),
    ("executions_done", "done"),
    ("seconds", "seconds"),
    ("executions_per_second", "a second"),
    ("redis_cpu_seconds", "Redis CPU s"),
    ("duplicates", "duplicates"),
    ("wrong", "wrong"),
    ("cut", "cut"),
)


def run(servers: Servers, options: Namespace, screen: Screen) -> list[Row]:
    with screen.stage("Filling the tables", options.executions) as show:
        stale_executions.fill(stale_executions.Size(options.executions, options.tasks_per_execution), show)
    rows = []
    for workers in options.worker_counts:
        row = measure_cluster(CELERY, servers, Namespace(**vars(options) | {"workers": workers}), screen)
        row.extra |= {"tasks_per_execution": options.tasks_per_execution, "cores": os.cpu_count()}
        screen.keep(row)
        rows.append(row)
    return rows
