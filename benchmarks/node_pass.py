"""One pass with node processes: all begin together and work until nothing is left or the budget is spent."""

from collections.abc import Callable
from time import monotonic

from benchmarks.figures import Meters, Pids
from benchmarks.nodes import Nodes
from benchmarks.screen import Show

POLL_SECONDS = 0.1


def run_cycles(nodes: Nodes, meters: Meters, left: Callable[[], int], budget: float, show: Show) -> bool:
    """Run cycle after cycle, as ticks would start them, until a cycle leaves nothing or has done nothing.

    The clock runs from `go` to the end of the last node. It stops between two cycles, while the backlog is read.
    Return True if the budget ended the pass; then the nodes are stopped as well.
    """
    pids: Pids = {"nodes": [node.process.pid for node in nodes.alive]}
    while True:
        before = nodes.total("succeeded")
        meters.start(pids)
        began = monotonic()
        nodes.send("go")
        while not nodes.wait(POLL_SECONDS):
            show(nodes.refreshed)
            if meters.seconds + monotonic() - began > budget:
                meters.stop(end=nodes.stop)
                return True
        meters.stop()
        show(nodes.refreshed)
        if not left() or nodes.total("succeeded") == before:
            return False
