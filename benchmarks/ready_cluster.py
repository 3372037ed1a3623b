"""A cluster whose workers are ready, and a check that they still run."""

import time
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks.cluster import Cluster
from benchmarks.errors import BenchError
from benchmarks.schedule import running_schedule
from benchmarks.servers import Servers
from harbor_refresh.tasks.queue import execution_queue

READY_SECONDS = 60
DEFAULT_INTERVAL = 30.0


class ScheduledCluster(Cluster):
    """A cluster whose workers send no ticks: only beat does."""

    app = "benchmarks.scheduled_app"


class StockWorkers(Cluster):
    """Workers with Celery's own consumer and transport, beside a cluster that has a beat."""

    app = "benchmarks.stock_app"
    prefix = "stock"
    has_beat = False


class LeanWorkers(StockWorkers):
    """Workers with nothing of ours that send no events of tasks either."""

    app = "benchmarks.lean_app"
    prefix = "lean"


@dataclass(frozen=True)
class ReadyCluster:
    processes: Cluster
    wake_up: bool
    interval: float

    def check(self) -> None:
        """Raise BenchError if a process has ended."""
        if failure := self.processes.failure():
            raise BenchError(failure)


@contextmanager
def ready_cluster(
    servers: Servers,
    options: Namespace,
    *,
    wake_up: bool = True,
    interval: float = DEFAULT_INTERVAL,
    include: Sequence[str] = (),
    kind: type[Cluster] | None = None,
) -> Iterator[ReadyCluster]:
    """Yield workers and a beat that are ready. `interval` is used only without the wake-up."""
    kind = kind or (Cluster if wake_up else ScheduledCluster)
    every = DEFAULT_INTERVAL if wake_up else interval
    environ = {"EXECUTION_STATUS_REFRESH_INTERVAL_SECONDS": f"{every:g}"}
    before = set(execution_queue().stats().nodes)  # nodes of an earlier cluster that do not count as dead yet
    processes = kind(servers, options.workers, options.concurrency, include=include, **environ)
    with running_schedule(), processes:
        cluster = ReadyCluster(processes, wake_up, every)
        deadline = time.monotonic() + READY_SECONDS
        while len(set(execution_queue().stats().nodes) - before) < options.workers * options.concurrency:
            cluster.check()
            if time.monotonic() > deadline:
                raise BenchError(f"The workers were not ready after {READY_SECONDS} s.")
            time.sleep(0.1)
        yield cluster
