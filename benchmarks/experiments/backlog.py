"""What one execution costs, by the number that wait: each strategy at each size, the smallest size first.

The tables always have the largest size, so that only the backlog grows. A strategy that the budget has cut at
one size is not tried at a larger one.
"""

from argparse import Namespace
from collections.abc import Sequence

from benchmarks import stale_executions
from benchmarks.experiments.strategies import CELERY, measure_cluster, measure_nodes
from benchmarks.rows import Row
from benchmarks.screen import Column, Screen
from benchmarks.servers import Servers

COLUMNS: Sequence[Column] = (
    ("strategy", "strategy"),
    ("executions", "waiting"),
    ("executions_done", "done"),
    ("seconds", "seconds"),
    ("executions_per_second", "a second"),
    ("us_each", "µs each"),
    ("redis_cpu_seconds", "Redis CPU s"),
    ("cut", "cut"),
    ("not_tried", "not tried"),
)


def run(servers: Servers, options: Namespace, screen: Screen) -> list[Row]:
    largest = max(options.sizes)
    with screen.stage("Filling the tables", largest) as show:
        stale_executions.fill(stale_executions.Size(largest, options.tasks_per_execution), show)
    rows: list[Row] = []
    cut_at: dict[str, int] = {}
    for size in options.sizes:
        for name in options.strategies:
            if name in cut_at:
                row = Row(
                    name, options.nodes, size, extra={"us_each": None, "not_tried": f"cut at {cut_at[name]:,}"}
                )
            else:
                row = _measure(name, size, servers, options, screen)
            if row.cut:
                cut_at[name] = size
            row.extra |= {"tasks_per_execution": options.tasks_per_execution, "budget_seconds": options.budget}
            screen.keep(row)
            rows.append(row)
    return rows


def _measure(name: str, size: int, servers: Servers, options: Namespace, screen: Screen) -> Row:
    measure = measure_cluster if name == CELERY else measure_nodes
    row = measure(name, servers, Namespace(**vars(options) | {"executions": size}), screen)
    row.extra |= {"us_each": us_each(row), "not_tried": None}
    return row


def us_each(row: Row) -> float | None:
    """Microseconds for each execution that was done; None if none was done."""
    return round(1e6 / row.executions_per_second, 2) if row.executions_per_second else None
