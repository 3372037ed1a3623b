"""Workers of plain Celery."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.peers.ready import ready
from benchmarks.processes import Processes
from benchmarks.servers import Servers


@contextmanager
def celery_workers(servers: Servers, workers: int, concurrency: int) -> Iterator[Processes]:
    celery = [sys.executable, "-m", "celery", "-A", "benchmarks.peers.celery_jobs", "worker", f"-c{concurrency}"]
    commands = {f"worker{n}": [*celery, "-n", f"worker{n}@%h", "--loglevel=INFO"] for n in range(1, workers + 1)}
    with ready(servers, commands, " ready.") as processes:
        yield processes
        gc.collect()  # a result unsubscribes when it is collected, and later its Redis is gone
