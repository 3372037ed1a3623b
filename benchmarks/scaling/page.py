"""The tables of docs/scaling.md. Each stands in the page between `<!-- NAME -->` and `<!-- end of NAME -->`."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache

from benchmarks.pictures.canvas import number
from benchmarks.scaling.costs import MICRO, Costs
from benchmarks.scaling.drain import drain
from benchmarks.scaling.drained import PROCESSES, Drained
from benchmarks.scaling.fleet import GB, Fleet
from benchmarks.scaling.limits import PARTS, limits, tick_limit
from benchmarks.scaling.measured import POINTS

SEED = 1
WORKERS = (1, 10, 100, 1_000)
SIZES = (1_000_000, 10_000_000, 100_000_000, 1_000_000_000)
#: What the remedies are shown for.
MANY = Fleet(workers=100, processes=4)
MANY_WAITING = 100_000_000
MOST_WAITING = 1_000_000_000


def tables(seed: int = SEED) -> dict[str, str]:
    """Return the text of each table by its name in the page."""
    return {
        "points": points(),
        "grid": grid_table(seed, SIZES),
        "limits": limits_table(),
        "memory": memory_table(),
        "remedies": remedies(seed),
        "storage": storage(seed),
    }


def replaced(text: str, found: Mapping[str, str]) -> str:
    """Put the tables into the text of the page."""
    for name, table in found.items():
        text = re.sub(
            rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->)",
            lambda match, table=table: f"{match[1]}\n{table}\n{match[2]}",  # type: ignore[misc]
            text,
            flags=re.DOTALL,
        )
    return text


def points() -> str:
    rows = [
        (
            point.what,
            f"[{point.section}](benchmarks.md#{point.section.lower().replace(' ', '-')})",
            number(point.workers),
            number(point.waiting),
            f"{figure(point.measured)} {point.unit}".strip(),
            f"{figure(point.modelled())} {point.unit}".strip(),
            f"{point.off_by():+.0%}".replace("+0%", "0%").replace("-0%", "0%"),
            f"{point.tolerance:.0%}",
        )
        for point in POINTS
    ]
    head = ("what", "table", "workers", "waiting", "measured", "model", "off by", "allowed")
    return table(head, rows, "llrrrrrr")


@cache
def simulated(workers: int, waiting: int, seed: int) -> Drained:
    return drain(Fleet(workers=workers), waiting, seed=seed)


def grid(seed: int = SEED, sizes: Iterable[int] = SIZES) -> list[tuple[int, Drained]]:
    """Return the simulation of each number of workers and each backlog."""
    return [(workers, simulated(workers, size, seed)) for size in sizes for workers in WORKERS]


def grid_table(seed: int, sizes: Iterable[int]) -> str:
    rows = [
        (number(one.executions), number(workers), time(one), number(round(one.per_second)), one.limit)
        for workers, one in grid(seed, sizes)
    ]
    return table(("waiting", "workers", "time", "a second", "limit"), rows, "rrrrl")


def limits_table() -> str:
    """What each part carries, on a fleet of ten workers."""
    found = [limits(Fleet(workers=10), size) for size in SIZES]
    rows = [(part, *(_rate(one[part]) for one in found)) for part in PARTS]
    rows.append(("the tick, without Redis", *[_rate(tick_limit())] * len(SIZES)))
    return table(("executions a second", *map(number, SIZES)), rows, "lrrrr")


def memory_table() -> str:
    costs = Costs()
    nodes = [workers * 2 for workers in WORKERS]
    each = MANY.depth * MANY.chunk
    rows = [
        ("Redis: waiting members", *(size_of(size * costs.member_bytes) for size in SIZES)),
        ("PostgreSQL: tables and indexes", *(size_of(size * costs.table_bytes) for size in SIZES)),
        ("PostgreSQL: of them read by refreshes", *(size_of(size * costs.read_bytes) for size in SIZES)),
        ("WAL of refreshing all", *(size_of(size * costs.wal_bytes) for size in SIZES)),
        ("bytes to Redis and the broker, and back", *(size_of(size * costs.redis_bytes) for size in SIZES)),
        ("bytes to PostgreSQL and back", *(size_of(size * costs.postgres_bytes) for size in SIZES)),
    ]
    first = table(("executions", *map(number, SIZES)), rows, "lrrrr")
    alive = [count / 2 * costs.command * MICRO for count in nodes]
    idle = [3 * count * costs.command * MICRO for count in WORKERS]
    gossip = [count**2 / 2 * costs.event * MICRO for count in WORKERS]
    rows = [
        ("Redis: tokens in flight, at most", *(size_of(count * each * costs.token_bytes) for count in nodes)),
        ("sessions of PostgreSQL, at most", *(number(count * 3) for count in WORKERS)),
        ("Redis: heartbeats, share of its time", *map(share, alive)),
        ("broker: workers that ask, share of its time", *map(share, idle)),
        ("broker: gossip, share of its time", *map(share, gossip)),
    ]
    return first + "\n" + table(("workers of two processes", *map(number, WORKERS)), rows, "lrrrr")


def remedies(seed: int) -> str:
    """What helps when Redis is the limit."""
    apart = replace(MANY, has_own_broker=True)
    fleets = {
        "as it is: one Redis, one PostgreSQL of 16 cores and 64 GB": MANY,
        "four times as many workers": replace(MANY, workers=4 * MANY.workers),
        "the same, with Celery's gossip": replace(MANY, workers=4 * MANY.workers, has_gossip=True),
        "chunks of 1,000 instead of 6,000": replace(MANY, chunk=1_000),
        "chunks of 10,000": replace(MANY, chunk=10_000),
        "the broker on a Redis of its own": apart,
        "… and the queue on 2 Redis servers": replace(apart, shards=2),
        "… on 4": replace(apart, shards=4),
        "… on 8": replace(apart, shards=8),
        "… on 16": replace(apart, shards=16),
        "… on 16, and 32 cores for PostgreSQL": replace(apart, shards=16, database_cores=32),
        "… on 16, and 2 databases": replace(apart, shards=16, databases=2),
    }
    return fleets_table(fleets, MANY_WAITING, seed)


def storage(seed: int) -> str:
    """What helps when the tables are larger than the memory."""
    eight = replace(MANY, has_own_broker=True, shards=8)
    ranges = replace(eight, has_ranges=True)
    fleets = {
        "one Redis, one PostgreSQL of 16 cores and 64 GB": MANY,
        "8 Redis servers, and one for the broker": eight,
        "… and 500,000 reads a second": replace(eight, disk_reads=500_000),
        "… and 512 GB of memory instead": replace(eight, database_memory=512 * GB),
        "… and neighbouring ids are claimed together instead": ranges,
        "… the same, and 4 databases": replace(ranges, databases=4),
    }
    return fleets_table(fleets, MOST_WAITING, seed)


def fleets_table(fleets: Mapping[str, Fleet], waiting: int, seed: int) -> str:
    found = [(text, drain(fleet, waiting, seed=seed)) for text, fleet in fleets.items()]
    rows = [(text, time(one), number(round(one.per_second)), one.limit, busiest(one)) for text, one in found]
    return table(("fleet", "time", "a second", "limit", "busiest"), rows, "lrrll")


def busiest(one: Drained) -> str:
    """Name the two busiest parts, beside the processes that wait for them."""
    ranked = sorted(one.busy.items(), key=lambda pair: -pair[1])
    ranked = [pair for pair in ranked if pair[0] != PROCESSES]
    return ", ".join(f"{name} {amount:.0%}" for name, amount in ranked[:2])


def time(one: Drained) -> str:
    """`4.2 s`, `12 min`, `5.3 h`, or `never`."""
    if one.seconds is None:
        return "never"
    if one.seconds < 600:
        return f"{one.seconds:.3g} s"
    if one.seconds < 7_200:
        return f"{one.seconds / 60:.0f} min"
    return f"{one.seconds / 3_600:.1f} h"


def figure(value: float) -> str:
    return number(round(value)) if value >= 100 else f"{value:.3g}"


def share(value: float) -> str:
    return f"{value:.2%}" if value < 0.01 else f"{value:,.0%}"


def size_of(size: float) -> str:
    units = (("TB", 1e12), ("GB", 1e9), ("MB", 1e6))
    unit, divisor = next((one for one in units if size >= one[1]), ("kB", 1e3))
    return f"{size / divisor:.3g} {unit}"


def _rate(value: float) -> str:
    return number(float(f"{value:.3g}")) if value != float("inf") else "-"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], alignment: str) -> str:
    rule = ["--:" if one == "r" else "---" for one in alignment]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *rows)) + "\n"
