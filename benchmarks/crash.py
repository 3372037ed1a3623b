"""What a crash costs: the second pass of a strategy, on a sample, in which one node is killed half-way.

The other nodes do the rest, with everything production has for it except reconcile. Reconcile would find every
execution again, and this pass measures what marks and claims alone save.
"""

from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic, sleep

from benchmarks import stale_executions
from benchmarks.cluster import Cluster
from benchmarks.errors import BenchError
from benchmarks.nodes import Node, Nodes
from benchmarks.schedule import running_schedule
from benchmarks.screen import Show
from benchmarks.servers import Servers
from harbor_refresh.tasks.queue import execution_queue
from harbor_refresh.tasks.strategies import Strategy

SAMPLE = 20_000
POLL_SECONDS = 0.02
TICK_SECONDS = 0.2
#: A node counts as dead after two seconds without a heartbeat instead of ten.
QUICK = {"HARBOR_REFRESH_TEST_NODE_TTL_SECONDS": "2"}
#: Seconds without progress after which the remaining work counts as stranded; more than twice the time after which
#: a node counts as dead. In this time a node of a bare loop has run tens of cycles, however slow the machine is.
QUIET_SECONDS = 8.0
#: Claims of a dead node wait for heartbeats, and workers of Celery for schedule and broker, too. A slow machine
#: multiplies these times. To wait long costs nothing as long as nothing is stranded.
QUIET_SECONDS_OF_CLAIMS = 60.0
#: The least number of chunks of a sample, so that a node can be killed half-way.
CHUNKS = 20


@dataclass(frozen=True)
class CrashResult:
    """Lost executions are wrong and not marked. Stranded ones are wrong and marked, but no live node takes them.

    All are None if the budget ended the pass, because then a wrong execution may only not be done yet.
    """

    killed: bool
    lost: int | None = None
    stranded: int | None = None
    wrong: int | None = None


def chunk(sample: int, limit: int = 2_000) -> str:
    return str(max(1, min(limit, sample // CHUNKS)))


def crash_nodes(servers: Servers, strategy: Strategy, sample: int, options: Namespace, show: Show) -> CrashResult:
    """Kill the node that has done the most when half of the sample is done. A single node is started again."""
    environ = QUICK | {"REFRESH_STRATEGY": strategy.name, "HARBOR_REFRESH_TEST_CHUNK": chunk(sample)}
    quiet = QUIET_SECONDS_OF_CLAIMS if strategy.name == "claim" else QUIET_SECONDS
    progress = SampleProgress(sample, options.budget, show, quiet)
    with Nodes(servers, [["cycle"]] * options.nodes, **environ) as nodes:
        nodes.send("go")
        killed = False
        while not nodes.wait(POLL_SECONDS):
            if progress.budget_spent():
                return CrashResult(killed)
            if not killed and progress.done() * 2 >= sample:
                nodes.kill(_busiest(nodes))
                killed = True
                if not nodes.alive:
                    nodes.start(0)
                    nodes.wait(options.budget)
                    nodes.send("go")
        while _remaining(strategy) and not progress.stalled():
            if strategy.name == "claim":
                nodes.send("recover", nodes.alive[:1])
                nodes.wait(options.budget)
            nodes.send("go")
            while not nodes.wait(POLL_SECONDS):
                if progress.budget_spent():
                    return CrashResult(killed)
            if _remaining(strategy):
                sleep(TICK_SECONDS)
            progress.done()
    return assess(strategy, sample, killed)


def crash_cluster(
    servers: Servers, strategy: Strategy, sample: int, options: Namespace, show: Show
) -> CrashResult:
    """Kill a worker and its pool when half of the sample is done. A single worker is started again."""
    progress = SampleProgress(sample, options.budget, show, QUIET_SECONDS_OF_CLAIMS)
    killed = False
    environ = QUICK | {"HARBOR_REFRESH_TEST_CHUNK": chunk(sample, 500)}
    with (
        running_schedule(reconcile=False, recover_every=1),
        Cluster(servers, options.workers, options.concurrency, **environ) as cluster,
    ):
        progress.begin_when(lambda: progress.done() > 0, cluster.failure)
        while _remaining(strategy) and not progress.stalled():
            if progress.budget_spent():
                cluster.stop(cold=True)
                return CrashResult(killed)
            if not killed and progress.done() * 2 >= sample:
                killed = True
                cluster.kill("worker1")
                if options.workers == 1:
                    cluster.start("worker1")
            progress.done()
            if failure := cluster.failure():
                raise BenchError(failure)
            sleep(POLL_SECONDS)
    return assess(strategy, sample, killed)


def assess(strategy: Strategy, sample: int, killed: bool) -> CrashResult:
    """Compare rows and marks when all processes have ended."""
    wrong = stale_executions.wrong(sample)
    lost = strategy.lost([name for number in wrong for name in stale_executions.members(number, number)])
    return CrashResult(killed, len(lost), len(wrong) - len(lost), len(wrong))


class SampleProgress:
    """How much of the sample is done, since when nothing moved, and whether the budget is spent."""

    PATIENCE_SECONDS = 60

    def __init__(self, sample: int, budget: float, show: Show, quiet: float = QUIET_SECONDS) -> None:
        self._sample, self._budget, self._show, self._quiet = sample, budget, show, quiet
        self._done = 0
        self._began = self._moved = monotonic()

    def begin_when(self, begun: Callable[[], bool], failure: Callable[[], str | None]) -> None:
        """Start the budget's clock when `begun` is true."""
        while not begun():
            if (text := failure()) or monotonic() - self._began > self.PATIENCE_SECONDS:
                raise BenchError(text or f"No worker began to work within {self.PATIENCE_SECONDS} s.")
            sleep(POLL_SECONDS)
        self._began = self._moved = monotonic()

    def done(self) -> int:
        done = stale_executions.count_begun(self._sample)
        if done != self._done:
            self._done, self._moved = done, monotonic()
            self._show(done)
        return done

    def budget_spent(self) -> bool:
        return monotonic() - self._began > self._budget

    def stalled(self) -> bool:
        return monotonic() - self._moved > self._quiet


def _busiest(nodes: Nodes) -> Node:
    return max(nodes.alive, key=lambda node: (node.working, node.refreshed))


def _remaining(strategy: Strategy) -> int:
    """Count what is marked and what is claimed, because the claims of dead nodes are still in flight. Both in one
    look: a claim that is released between two looks is in neither."""
    if strategy.name != "claim":
        return strategy.backlog()
    stats = execution_queue().stats()
    return stats.backlog + stats.in_flight
