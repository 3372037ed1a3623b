"""procrastinate: jobs in PostgreSQL. It has no groups, so its jobs are counted by their task's name."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.db import connection

from benchmarks.peers.procrastinate_jobs import app, noted
from benchmarks.peers.ready import ready
from benchmarks.peers.said import Said
from benchmarks.processes import Processes
from benchmarks.servers import Servers

NAME = "procrastinate"
COUNTS = "SELECT status::text, count(*) FROM procrastinate_jobs WHERE id > %s AND task_name = %s GROUP BY status"


@contextmanager
def workers(servers: Servers, workers: int, concurrency: int) -> Iterator[Processes]:
    with app.open():
        if not app.check_connection():
            app.schema_manager.apply_schema()
    procrastinate = [
        sys.executable,
        "-m",
        "procrastinate",
        "--verbose",
        "--app=benchmarks.peers.procrastinate_jobs.app",
    ]
    commands = {
        f"worker{n}": [*procrastinate, "worker", f"--concurrency={concurrency}", f"--name=worker{n}"]
        for n in range(1, workers + 1)
    }
    with ready(servers, commands, "Starting worker") as processes:
        yield processes


@dataclass(frozen=True)
class Jobs:
    after: int
    size: int

    def says(self) -> Said:
        with connection.cursor() as cursor:
            cursor.execute(COUNTS, (self.after, noted.name))
            counts = dict(cursor.fetchall())
        done = counts.get("succeeded", 0) + counts.get("failed", 0)
        return Said(done, done == self.size, ", ".join(f"{count:,} {status}" for status, count in counts.items()))


def start(numbers: Sequence[int]) -> Jobs:
    with connection.cursor() as cursor:
        cursor.execute("SELECT coalesce(max(id), 0) FROM procrastinate_jobs")
        (after,) = cursor.fetchone()
    arguments: Any = ({"number": number} for number in numbers)
    with app.open():
        noted.batch_defer(*arguments)
    return Jobs(after, len(numbers))
