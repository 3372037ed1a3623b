"""The two upper limits of every strategy: the database alone, and Redis alone."""

from argparse import Namespace

from redis import Redis

from benchmarks import node_modes, stale_executions
from benchmarks.figures import duplicates, metered, rate, split_range
from benchmarks.initial_state import reset
from benchmarks.node_pass import run_cycles
from benchmarks.nodes import Nodes
from benchmarks.rows import Row
from benchmarks.screen import Screen
from benchmarks.servers import Servers


def database(servers: Servers, options: Namespace, screen: Screen) -> Row:
    """Run the product's statements in a bare loop over even ranges of ids, one connection for each node."""
    n = options.executions
    row = Row("limit", options.nodes, n, redis_memory_bytes=0)
    reset(servers, n)
    modes = [["limit", f"--first={first}", f"--last={last}"] for first, last in split_range(n, options.nodes)]
    with metered(servers) as meters:
        with Nodes(servers, modes) as nodes, screen.stage("limit: PostgreSQL alone", n) as show:
            row.cut = run_cycles(nodes, meters, lambda: 0, options.budget, show)
        meters.fill(row)
    refreshes = nodes.refreshed if row.cut else nodes.total("succeeded")
    done = stale_executions.count_true(n)
    rate(row, done)
    duplicates(row, refreshes, done)
    row.wrong = None if row.cut else len(stale_executions.wrong(n))
    return row


def redis(servers: Servers, options: Namespace, screen: Screen) -> Row:
    """Pop members, add their tokens and remove them. Nothing is refreshed, so no status can be wrong."""
    n = options.executions
    row = Row("redis", options.nodes, n)
    servers.empty_redis()
    with Redis.from_url(servers.redis_url) as client:
        before = client.info("memory")["used_memory"]
        for page in stale_executions.pages(n):
            client.sadd(node_modes.QUEUE, *page)
        row.redis_memory_bytes = client.info("memory")["used_memory"] - before
    modes = [["redis"]] * options.nodes
    with metered(servers) as meters:
        with Nodes(servers, modes) as nodes, screen.stage("redis: Redis alone", n) as show:
            row.cut = run_cycles(nodes, meters, lambda: 0, options.budget, show)
        meters.fill(row)
    if row.cut:
        row.extra["executions_done"] = row.executions_per_second = None
    else:
        rate(row, nodes.total("succeeded"))
        row.duplicates = nodes.total("succeeded") - n
    return row
