"""One pass with node processes: all of them sent off together, until nothing is left or the time is up."""

from collections.abc import Callable
from time import monotonic

from benchmarks.figures import Meters, Pids
from benchmarks.nodes import Nodes
from benchmarks.screen import Show

LOOK_SECONDS = 0.1


def work_off(nodes: Nodes, meters: Meters, left: Callable[[], int], budget: float, show: Show) -> bool:
    """Cycle after cycle, as ticks would start them, until one leaves nothing or has done nothing.

    The clock runs from `go` to the end of the last node; between two cycles it stands still, while we ask
    what is left. True if the budget ended it: then the nodes are ended, too.
    """
    pids: Pids = {"nodes": [node.process.pid for node in nodes.alive]}
    while True:
        before = nodes.total("succeeded")
        meters.start(pids)
        began = monotonic()
        nodes.send("go")
        while not nodes.wait(LOOK_SECONDS):
            show(nodes.refreshed)
            if meters.seconds + monotonic() - began > budget:
                meters.stop(end=nodes.stop)
                return True
        meters.stop()
        show(nodes.refreshed)
        if not left() or nodes.total("succeeded") == before:
            return False
