"""The two rows no strategy can beat: the database alone, and Redis alone."""

from argparse import Namespace

from redis import Redis

from benchmarks import data, works
from benchmarks.cycles import work_off
from benchmarks.figures import duplicates, metered, rate, shares
from benchmarks.ground import Ground
from benchmarks.nodes import Nodes
from benchmarks.preparing import stale_again
from benchmarks.rows import Row
from benchmarks.screen import Screen


def database(ground: Ground, options: Namespace, screen: Screen) -> Row:
    """The product's statements in a bare loop, over even shares of the ids, a connection a node."""
    n = options.executions
    row = Row("limit", options.nodes, n, redis_memory_bytes=0)
    stale_again(ground, n)
    modes = [["limit", f"--first={first}", f"--last={last}"] for first, last in shares(n, options.nodes)]
    with metered(ground) as meters:
        with Nodes(ground, modes) as nodes, screen.stage("limit: PostgreSQL alone", n) as show:
            row.cut = work_off(nodes, meters, lambda: 0, options.budget, show)
        meters.fill(row)
    refreshes = nodes.refreshed if row.cut else nodes.total("succeeded")
    done = data.count_true(n)
    rate(row, done)
    duplicates(row, refreshes, done)
    row.wrong = None if row.cut else len(data.wrong(n))
    return row


def redis(ground: Ground, options: Namespace, screen: Screen) -> Row:
    """Taking members, noting tokens, striking them off. Nothing is refreshed, so nothing can be wrong."""
    n = options.executions
    row = Row("redis", options.nodes, n)
    ground.empty_redis()
    with Redis.from_url(ground.redis_url) as client:
        before = client.info("memory")["used_memory"]
        for page in data.pages(n):
            client.sadd(works.QUEUE, *page)
        row.redis_memory_bytes = client.info("memory")["used_memory"] - before
    modes = [["redis"]] * options.nodes
    with metered(ground) as meters:
        with Nodes(ground, modes) as nodes, screen.stage("redis: Redis alone", n) as show:
            row.cut = work_off(nodes, meters, lambda: 0, options.budget, show)
        meters.fill(row)
    if row.cut:
        row.extra["executions_done"] = row.executions_per_second = None
    else:
        rate(row, nodes.total("succeeded"))
        row.duplicates = nodes.total("succeeded") - n
    return row
