"""The first pass of `claim+celery`: workers and a beat drain the backlog."""

from argparse import Namespace
from time import monotonic, sleep

from benchmarks.cluster import Cluster
from benchmarks.errors import BenchError
from benchmarks.figures import Meters
from benchmarks.schedule import running_schedule
from benchmarks.screen import Show
from benchmarks.servers import Servers
from harbor_refresh.tasks.pipeline import wakeup
from harbor_refresh.tasks.queue import execution_queue

POLL_SECONDS = 0.02
STALLED_SECONDS = 60
START_SECONDS = 60
CALM_SECONDS = 1


def drain(servers: Servers, options: Namespace, meters: Meters, show: Show) -> tuple[bool, int]:
    """Measure from the first tick until nothing is queued and nothing in flight.

    The workers are ready before the clock starts, like the nodes of the other strategies before `go`, because the
    time to start them does not depend on the backlog. Until then the queue is paused, as it is while the database
    is down.

    Return whether the budget ended the pass, and how many refreshes the workers have logged.
    """
    redis, pause = meters.redis.client, execution_queue().keys.pause
    redis.set(pause, 1)
    with running_schedule(), Cluster(servers, options.workers, options.concurrency) as cluster:
        _wait_until_ready(cluster, options.workers * options.concurrency)
        meters.start(cluster.pids)
        redis.delete(pause)
        wakeup.send_tick()
        cut = _drain(cluster, options, meters, show)
    return cut, cluster.refreshed()[0]


def _wait_until_ready(cluster: Cluster, nodes: int) -> None:
    """Wait until every process has sent a heartbeat, and CALM_SECONDS longer for the work at its start."""
    deadline = monotonic() + START_SECONDS
    while len(execution_queue().stats().nodes) < nodes:
        if (failure := cluster.failure()) or monotonic() > deadline:
            raise BenchError(failure or f"The workers were not ready after {START_SECONDS} s.")
        sleep(POLL_SECONDS)
    sleep(CALM_SECONDS)


def _drain(cluster: Cluster, options: Namespace, meters: Meters, show: Show) -> bool:
    keys = execution_queue().keys
    redis = meters.redis.client
    n = left = options.executions
    began = moved = monotonic()
    while left:
        now = monotonic()
        if (failure := cluster.failure()) or now - moved > STALLED_SECONDS:
            raise BenchError(failure or f"Nothing moved for {STALLED_SECONDS} s, {left:,} executions are left.")
        with redis.pipeline(transaction=True) as pipe:  # one look, so that nothing moves between the two counts
            pipe.scard(keys.queue)
            pipe.scard(keys.processing)
            backlog, in_flight = pipe.execute()
        meters.redis.uncounted("multi", "scard", "scard", "exec")
        if backlog + in_flight != left:
            left, moved = backlog + in_flight, now
            show(n - left)
        if left and now - began > options.budget:
            meters.stop(end=cluster.stop)
            return True
        if left:
            sleep(POLL_SECONDS)
    meters.stop(end=cluster.stop)
    return False
