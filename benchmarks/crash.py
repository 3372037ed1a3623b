"""What a crash costs: the second pass of a strategy, on a sample, in which one node is killed half-way.

The rest is left to those that survive, and to what production has for it but reconcile, which would find
everything again: only what marks and claims save counts here.
"""

from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic, sleep

from benchmarks import data
from benchmarks.crew import Crew
from benchmarks.errors import BenchError
from benchmarks.ground import Ground
from benchmarks.nodes import Node, Nodes
from benchmarks.schedule import running_schedule
from benchmarks.screen import Show
from executions.queue import execution_queue
from executions.strategies import Strategy

SAMPLE = 20_000
LOOK_SECONDS = 0.02
TICK_SECONDS = 0.2
#: A node is dead after two seconds of silence and not after ten.
QUICK = {"REFRESH_HEARTBEAT_SECONDS": "0.4", "REFRESH_NODE_TTL_SECONDS": "2"}
QUICK_CREW = QUICK | {"REFRESH_RECOVER_INTERVAL_SECONDS": "1"}
#: So long nothing must have moved until what is left is left for good; more than twice a node's silence.
QUIET_SECONDS = 8.0
#: A sample is worked in this many chunks at least, so that it has a half-way.
CHUNKS = 20


@dataclass(frozen=True)
class Harm:
    """`lost` are wrong and marked nowhere; `stranded` are wrong and marked, but nobody there takes them. All
    None if the budget ended the pass: then some were merely not done yet."""

    killed: bool
    lost: int | None = None
    stranded: int | None = None
    wrong: int | None = None


def chunk(sample: int, limit: int = 2_000) -> str:
    return str(max(1, min(limit, sample // CHUNKS)))


def crash_nodes(ground: Ground, strategy: Strategy, sample: int, options: Namespace, show: Show) -> Harm:
    """Kill the node that has done the most, when half of the sample is done; a single node comes back."""
    environ = QUICK | {"REFRESH_STRATEGY": strategy.name, "REFRESH_CHUNK": chunk(sample)}
    watch = Watch(sample, options.budget, show)
    with Nodes(ground, [["cycle"]] * options.nodes, **environ) as nodes:
        nodes.send("go")
        killed = False
        while not nodes.wait(LOOK_SECONDS):
            if watch.over():
                return Harm(killed)
            if not killed and watch.done() * 2 >= sample:
                nodes.kill(_busiest(nodes))
                killed = True
                if not nodes.alive:
                    nodes.start(0)
                    nodes.wait(options.budget)
                    nodes.send("go")
        while _left(strategy) and not watch.quiet():
            if strategy.name == "claim":
                nodes.send("recover", nodes.alive[:1])
                nodes.wait(options.budget)
            nodes.send("go")
            while not nodes.wait(LOOK_SECONDS):
                if watch.over():
                    return Harm(killed)
            if _left(strategy):
                sleep(TICK_SECONDS)
            watch.done()
    return harm(strategy, sample, killed)


def crash_crew(ground: Ground, strategy: Strategy, sample: int, options: Namespace, show: Show) -> Harm:
    """Kill a whole worker, pool and all, when half of the sample is done; a single one comes back."""
    watch = Watch(sample, options.budget, show)
    killed = False
    environ = QUICK_CREW | {"REFRESH_CHUNK": chunk(sample, 500)}
    with running_schedule(reconcile=False), Crew(ground, options.workers, options.concurrency, **environ) as crew:
        watch.begin_when(lambda: watch.done() > 0, crew.fallen)
        while _left(strategy) and not watch.quiet():
            if watch.over():
                crew.stop(firmly=True)
                return Harm(killed)
            if not killed and watch.done() * 2 >= sample:
                killed = True
                crew.kill("worker1")
                if options.workers == 1:
                    crew.start("worker1")
            watch.done()
            if fallen := crew.fallen():
                raise BenchError(fallen)
            sleep(LOOK_SECONDS)
    return harm(strategy, sample, killed)


def harm(strategy: Strategy, sample: int, killed: bool) -> Harm:
    """Look at rows and marks when everybody has ended."""
    wrong = data.wrong(sample)
    lost = strategy.lost([name for number in wrong for name in data.members(number, number)])
    return Harm(killed, len(lost), len(wrong) - len(lost), len(wrong))


class Watch:
    """How far the sample is, since when nothing has moved, and whether the time is up."""

    PATIENCE_SECONDS = 60

    def __init__(self, sample: int, budget: float, show: Show) -> None:
        self._sample, self._budget, self._show = sample, budget, show
        self._done = 0
        self._began = self._moved = monotonic()

    def begin_when(self, begun: Callable[[], bool], fallen: Callable[[], str | None]) -> None:
        """The time before that is not the budget's."""
        while not begun():
            if (last_words := fallen()) or monotonic() - self._began > self.PATIENCE_SECONDS:
                raise BenchError(last_words or f"Nobody began to work within {self.PATIENCE_SECONDS} s.")
            sleep(LOOK_SECONDS)
        self._began = self._moved = monotonic()

    def done(self) -> int:
        done = data.count_begun(self._sample)
        if done != self._done:
            self._done, self._moved = done, monotonic()
            self._show(done)
        return done

    def over(self) -> bool:
        return monotonic() - self._began > self._budget

    def quiet(self) -> bool:
        return monotonic() - self._moved > QUIET_SECONDS


def _busiest(nodes: Nodes) -> Node:
    return max(nodes.alive, key=lambda node: (node.at_work, node.refreshed))


def _left(strategy: Strategy) -> int:
    """What is marked, and what is claimed: the claims of the dead are still in flight."""
    return strategy.backlog() + (execution_queue().stats().in_flight if strategy.name == "claim" else 0)
