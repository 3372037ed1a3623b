"""An execution with tracked jobs, on Celery's own workers, which send no events of tasks."""

from contextlib import AbstractContextManager

from benchmarks.cluster import Cluster
from benchmarks.peers import ours
from benchmarks.peers.ours import start
from benchmarks.processes import Processes
from benchmarks.servers import Servers

__all__ = ["NAME", "start", "workers"]

NAME = "Harbor Refresh on Celery's own worker"


class LeanCluster(Cluster):
    app = "benchmarks.lean_app"


def workers(servers: Servers, workers: int, concurrency: int) -> AbstractContextManager[Processes]:
    return ours.workers(servers, workers, concurrency, LeanCluster)
