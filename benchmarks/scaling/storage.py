"""What the tables take on a disk, and how many of their pages a chunk reads from it."""

from benchmarks.scaling.costs import Costs
from benchmarks.scaling.fleet import Fleet
from harbor_refresh.tasks.pacing import CHUNKS_TOGETHER

PAGE_BYTES = 8_192


def reads_of_an_execution(fleet: Fleet, costs: Costs, executions: int) -> float:
    """Return how many pages PostgreSQL reads from its disk to refresh one execution.

    A refresh reads the row of the execution and its entries in the index `task_rollup`. What does not fit in
    memory is read from the disk. The members of a claim are sorted, so two that share a page read it once: many
    do in a small table, hardly any in a large one, unless neighbouring ids are claimed together.
    """
    here = executions / fleet.databases
    missing = max(0.0, 1 - fleet.database_memory / (here * costs.read_bytes))
    together = CHUNKS_TOGETHER * fleet.chunk
    pages = 0.0
    for each in (costs.execution_bytes, costs.index_bytes):
        there = max(1.0, here * each / PAGE_BYTES)
        pages += together * each / PAGE_BYTES if fleet.has_ranges else there * (1 - (1 - 1 / there) ** together)
    return missing * pages / together
