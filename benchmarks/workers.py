"""Throughput of `claim+celery` by the number of workers, all on this machine."""

import os
from argparse import Namespace
from collections.abc import Sequence

from benchmarks import data
from benchmarks.ground import Ground
from benchmarks.rows import Row
from benchmarks.screen import Column, Screen
from benchmarks.strategies import CELERY, by_crew

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


def run(ground: Ground, options: Namespace, screen: Screen) -> list[Row]:
    with screen.stage("Filling the tables", options.executions) as show:
        data.fill(data.Size(options.executions, options.tasks_per_execution), show)
    rows = []
    for workers in options.worker_counts:
        row = by_crew(CELERY, ground, Namespace(**vars(options) | {"workers": workers}), screen)
        row.extra |= {"tasks_per_execution": options.tasks_per_execution, "cores": os.cpu_count()}
        screen.keep(row)
        rows.append(row)
    return rows
