"""Workers of plain Celery."""

import sys
from contextlib import AbstractContextManager

from benchmarks.peers.ready import ready
from benchmarks.processes import Processes
from benchmarks.servers import Servers


def celery_workers(servers: Servers, workers: int, concurrency: int) -> AbstractContextManager[Processes]:
    celery = [sys.executable, "-m", "celery", "-A", "benchmarks.peers.celery_jobs", "worker", f"-c{concurrency}"]
    commands = {f"worker{n}": [*celery, "-n", f"worker{n}@%h", "--loglevel=INFO"] for n in range(1, workers + 1)}
    return ready(servers, commands, " ready.")
