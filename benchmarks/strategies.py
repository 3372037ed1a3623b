"""`bench strategies`: every strategy in turn over the same rows, and the two limits none of them can beat.

For each, in one row:

1. All executions stale and marked, K node processes ready. From `go` to the end of the last node is the time.
2. A sample once more, and one node is killed half-way: what is lost then, and what is stranded.

`claim+celery` is the product as it runs: workers and a beat, from the first touch of the backlog until queue
and processing are empty.
"""

from argparse import Namespace
from collections.abc import Sequence

from benchmarks import crash, data, limits, pipeline
from benchmarks.cycles import work_off
from benchmarks.figures import duplicates, metered, rate
from benchmarks.ground import Ground
from benchmarks.nodes import Nodes
from benchmarks.preparing import made, marked, stale_again
from benchmarks.rows import Row
from benchmarks.screen import Column, Screen

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


def run(ground: Ground, options: Namespace, screen: Screen) -> list[Row]:
    size = data.Size(options.executions, options.tasks_per_execution)
    with screen.stage("Filling the tables", size.executions) as show:
        data.fill(size, show)
    rows = []
    measures = [by_crew if name == CELERY else by_nodes for name in options.strategies]
    for name, measure in zip(options.strategies, measures, strict=True):
        row = measure(name, ground, options, screen)
        suffer(row, ground, options, screen)
        rows.append(_kept(row, options, screen))
    rows.append(_kept(limits.database(ground, options, screen), options, screen))
    rows.append(_kept(limits.redis(ground, options, screen), options, screen))
    return rows


def by_nodes(name: str, ground: Ground, options: Namespace, screen: Screen) -> Row:
    """The first pass with node processes."""
    strategy, n = made(name), options.executions
    row = Row(name, options.nodes, n)
    stale_again(ground, n)
    row.redis_memory_bytes = marked(ground, strategy, n, screen, name)
    with metered(ground) as meters:
        with (
            Nodes(ground, [["cycle"]] * options.nodes, REFRESH_STRATEGY=name) as nodes,
            screen.stage(f"{name}: {options.nodes} nodes", n) as show,
        ):
            row.cut = work_off(nodes, meters, strategy.backlog, options.budget, show)
        meters.fill(row)
    refreshes = nodes.refreshed if row.cut else nodes.total("succeeded")
    told(row, refreshes)
    return row


def by_crew(name: str, ground: Ground, options: Namespace, screen: Screen) -> Row:
    """The first pass with workers and a beat."""
    strategy, n = made("claim"), options.executions
    row = Row(name, options.workers * options.concurrency, n)
    row.extra |= {"workers": options.workers, "concurrency": options.concurrency}
    stale_again(ground, n)
    row.redis_memory_bytes = marked(ground, strategy, n, screen, name)
    text = f"{name}: {options.workers} workers of {options.concurrency}"
    with metered(ground) as meters, screen.stage(text, n) as show:
        row.cut, refreshes = pipeline.drain(ground, options, meters, show)
        meters.fill(row)
    told(row, refreshes)
    return row


def told(row: Row, refreshes: int) -> None:
    """What the rows say when everybody has ended."""
    done = data.count_true(row.executions)
    rate(row, done)
    duplicates(row, refreshes, done)
    row.wrong = None if row.cut else len(data.wrong(row.executions))


def suffer(row: Row, ground: Ground, options: Namespace, screen: Screen) -> None:
    """The second pass: its losses, and its wrong ones beside those of the first."""
    strategy = made("claim" if row.strategy == CELERY else row.strategy)
    sample = min(options.executions, crash.SAMPLE)
    stale_again(ground, sample)
    marked(ground, strategy, sample, screen, f"{row.strategy}, a crash")
    with screen.stage(f"{row.strategy}: a node is killed", sample) as show:
        kill = crash.crash_crew if row.strategy == CELERY else crash.crash_nodes
        harm = kill(ground, strategy, sample, options, show)
    row.lost = harm.lost
    row.wrong = None if row.wrong is None or harm.wrong is None else row.wrong + harm.wrong
    row.extra |= {"stranded": harm.stranded, "killed": harm.killed, "crash_sample": sample}
    row.extra["cut_passes"] = [name for name, cut in (("measure", row.cut), ("crash", harm.lost is None)) if cut]
    row.cut = bool(row.extra["cut_passes"])


def _kept(row: Row, options: Namespace, screen: Screen) -> Row:
    row.extra |= {"tasks_per_execution": options.tasks_per_execution, "budget_seconds": options.budget}
    screen.keep(row)
    return row
