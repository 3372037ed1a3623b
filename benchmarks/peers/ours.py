"""An execution with tracked jobs."""

from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks.cluster import Cluster
from benchmarks.peers.our_jobs import noted
from benchmarks.peers.said import Said
from benchmarks.processes import Processes
from benchmarks.ready_cluster import ready_cluster
from benchmarks.servers import Servers
from harbor_refresh.executions.status import is_final
from harbor_refresh.tasks.jobs import TrackedExecution
from harbor_refresh.tasks.jobs import start as start_jobs

NAME = "Harbor Refresh"


@contextmanager
def workers(
    servers: Servers, workers: int, concurrency: int, kind: type[Cluster] | None = None
) -> Iterator[Processes]:
    options = Namespace(workers=workers, concurrency=concurrency)
    with ready_cluster(servers, options, include=["benchmarks.peers.our_jobs"], kind=kind) as cluster:
        yield cluster.processes


@dataclass(frozen=True)
class Execution:
    execution: TrackedExecution

    def says(self) -> Said:
        self.execution.refresh_from_db()
        return Said(self.execution.progress().done, is_final(self.execution.status), self.execution.status)


def start(numbers: Sequence[int]) -> Execution:
    return Execution(start_jobs("REPLICATION", jobs=[noted.s(number) for number in numbers]))
