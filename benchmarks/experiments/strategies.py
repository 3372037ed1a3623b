"""`bench strategies`: every strategy in turn over the same rows, and the two upper limits.

Each row has the figures of two passes:

1. All executions are stale and marked, and K node processes are ready. The time runs from `go` to the end of the
   last node.
2. A sample is stale and marked, and one node is killed half-way. The row tells what is lost and what is stranded.

`claim+celery` is the product as it runs in production: workers and a beat. Its time runs from the first tick until
queue and processing are empty.
"""

from argparse import Namespace
from collections.abc import Sequence

from benchmarks import celery_pass, crash, limits, stale_executions
from benchmarks.figures import duplicates, metered, rate
from benchmarks.initial_state import mark, reset
from benchmarks.node_pass import run_cycles
from benchmarks.nodes import Nodes
from benchmarks.rows import Row
from benchmarks.screen import Column, Screen
from benchmarks.servers import Servers
from harbor_refresh.tasks.strategies import STRATEGIES

CELERY = "claim+celery"
ORDER = ("scan", "lock", "hash", "upstream", "claim", CELERY)

COLUMNS: Sequence[Column] = (
    ("strategy", "strategy"),
    ("nodes", "nodes"),
    ("executions_done", "done"),
    ("seconds", "seconds"),
    ("executions_per_second", "a second"),
    ("redis_commands", "Redis commands"),
    ("redis_cpu_seconds", "Redis CPU s"),
    ("redis_memory_bytes", "Redis bytes"),
    ("sql_statements", "SQL"),
    ("duplicates", "duplicates"),
    ("lost", "lost"),
    ("stranded", "stranded"),
    ("wrong", "wrong"),
    ("cut", "cut"),
)


def run(servers: Servers, options: Namespace, screen: Screen) -> list[Row]:
    size = stale_executions.Size(options.executions, options.tasks_per_execution)
    with screen.stage("Filling the tables", size.executions) as show:
        stale_executions.fill(size, show)
    rows = []
    measures = [measure_cluster if name == CELERY else measure_nodes for name in options.strategies]
    for name, measure in zip(options.strategies, measures, strict=True):
        row = measure(name, servers, options, screen)
        measure_crash(row, servers, options, screen)
        rows.append(_keep(row, options, screen))
    rows.append(_keep(limits.database(servers, options, screen), options, screen))
    rows.append(_keep(limits.redis(servers, options, screen), options, screen))
    return rows


def measure_nodes(name: str, servers: Servers, options: Namespace, screen: Screen) -> Row:
    """Run the first pass with node processes."""
    strategy, n = STRATEGIES[name], options.executions
    row = Row(name, options.nodes, n)
    reset(servers, n)
    row.redis_memory_bytes = mark(servers, strategy, n, screen, name)
    with metered(servers) as meters:
        with (
            Nodes(servers, [["cycle"]] * options.nodes, REFRESH_STRATEGY=name) as nodes,
            screen.stage(f"{name}: {options.nodes} nodes", n) as show,
        ):
            row.cut = run_cycles(nodes, meters, strategy.backlog, options.budget, show)
        meters.fill(row)
    refreshes = nodes.refreshed if row.cut else nodes.total("succeeded")
    fill_counts(row, refreshes)
    return row


def measure_cluster(name: str, servers: Servers, options: Namespace, screen: Screen) -> Row:
    """Run the first pass with workers and a beat."""
    strategy, n = STRATEGIES["claim"], options.executions
    row = Row(name, options.workers * options.concurrency, n)
    row.extra |= {"workers": options.workers, "concurrency": options.concurrency}
    reset(servers, n)
    row.redis_memory_bytes = mark(servers, strategy, n, screen, name)
    text = f"{name}: {options.workers} workers of {options.concurrency}"
    with metered(servers) as meters, screen.stage(text, n) as show:
        row.cut, refreshes = celery_pass.drain(servers, options, meters, show)
        meters.fill(row)
    fill_counts(row, refreshes)
    return row


def fill_counts(row: Row, refreshes: int) -> None:
    """Write the figures that the executions give when all processes have ended."""
    done = stale_executions.count_true(row.executions)
    rate(row, done)
    duplicates(row, refreshes, done)
    row.wrong = None if row.cut else len(stale_executions.wrong(row.executions))


def measure_crash(row: Row, servers: Servers, options: Namespace, screen: Screen) -> None:
    """Run the second pass: set what is lost and stranded, and add its wrong executions to those of the first."""
    strategy = STRATEGIES["claim" if row.strategy == CELERY else row.strategy]
    sample = min(options.executions, crash.SAMPLE)
    reset(servers, sample)
    mark(servers, strategy, sample, screen, f"{row.strategy}, a crash")
    with screen.stage(f"{row.strategy}: a node is killed", sample) as show:
        measure = crash.crash_cluster if row.strategy == CELERY else crash.crash_nodes
        result = measure(servers, strategy, sample, options, show)
    row.lost = result.lost
    row.wrong = None if row.wrong is None or result.wrong is None else row.wrong + result.wrong
    row.extra |= {"stranded": result.stranded, "killed": result.killed, "crash_sample": sample}
    row.extra["cut_passes"] = [name for name, cut in (("measure", row.cut), ("crash", result.lost is None)) if cut]
    row.cut = bool(row.extra["cut_passes"])


def _keep(row: Row, options: Namespace, screen: Screen) -> Row:
    row.extra |= {"tasks_per_execution": options.tasks_per_execution, "budget_seconds": options.budget}
    screen.keep(row)
    return row
