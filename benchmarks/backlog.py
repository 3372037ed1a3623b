"""What one execution costs, by how many wait: each strategy at each size, the smallest size first.

The tables are as large as the largest size all the time: what grows is the backlog. A strategy that the
budget has cut once is not tried with more.
"""

from argparse import Namespace
from collections.abc import Sequence

from benchmarks import data
from benchmarks.ground import Ground
from benchmarks.rows import Row
from benchmarks.screen import Column, Screen
from benchmarks.strategies import CELERY, by_crew, by_nodes

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


def run(ground: Ground, options: Namespace, screen: Screen) -> list[Row]:
    largest = max(options.sizes)
    with screen.stage("Filling the tables", largest) as show:
        data.fill(data.Size(largest, options.tasks_per_execution), show)
    rows: list[Row] = []
    cut_at: dict[str, int] = {}
    for size in options.sizes:
        for name in options.strategies:
            if name in cut_at:
                row = Row(
                    name, options.nodes, size, extra={"us_each": None, "not_tried": f"cut at {cut_at[name]:,}"}
                )
            else:
                row = _measure(name, size, ground, options, screen)
            if row.cut:
                cut_at[name] = size
            row.extra |= {"tasks_per_execution": options.tasks_per_execution, "budget_seconds": options.budget}
            screen.keep(row)
            rows.append(row)
    return rows


def _measure(name: str, size: int, ground: Ground, options: Namespace, screen: Screen) -> Row:
    measure = by_crew if name == CELERY else by_nodes
    row = measure(name, ground, Namespace(**vars(options) | {"executions": size}), screen)
    row.extra |= {"us_each": us_each(row), "not_tried": None}
    return row


def us_each(row: Row) -> float | None:
    """Microseconds an execution, of those that were done; None if none was."""
    return round(1e6 / row.executions_per_second, 2) if row.executions_per_second else None
