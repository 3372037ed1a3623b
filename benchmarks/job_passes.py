"""Passes of jobs: workers that are ready consume, jobs are started or published, until all are done.

The time is that from the start to the last end, because a sender of jobs sends while others run. Tracked jobs are
done when every task is final in the database; plain tasks when the last message is acknowledged.
"""

import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from benchmarks.empty_jobs import QUEUE, Publish
from benchmarks.errors import BenchError
from benchmarks.figures import metered
from benchmarks.meters import RedisMeter
from benchmarks.ready_cluster import ReadyCluster
from benchmarks.rows import Row
from benchmarks.screen import Show
from benchmarks.servers import Servers
from harbor_refresh.celery import app
from harbor_refresh.tasks.jobs import TrackedExecution

#: It costs PostgreSQL a few milliseconds.
POLL_SECONDS = 0.1
PATIENCE_SECONDS = 10


@dataclass(frozen=True)
class JobPasses:
    """Runs one pass after another on these workers."""

    servers: Servers
    options: Namespace
    cluster: ReadyCluster

    def run(self, publish: Publish, jobs: int, show: Show = lambda done: None) -> Row:
        """Publish so many jobs and wait until they are done. The status of the execution becomes final later; that
        is waited for and not measured."""
        row = Row("", self.options.workers * self.options.concurrency, 1)
        with metered(self.servers) as meters, self._consuming():
            meters.start(self.cluster.processes.pids)
            execution = publish(jobs)
            self._wait(jobs, execution, meters.redis, show)
            meters.stop()
            meters.fill(row)
        if execution:
            execution.wait(self.options.budget)
        return row

    @contextmanager
    def _consuming(self) -> Iterator[None]:
        """Let the workers consume QUEUE during the block. A worker that has just become ready may not answer to
        remote control yet, so the command is repeated."""
        names = self.cluster.processes.celery_names
        to_these: dict[str, Any] = {"destination": names, "reply": True, "limit": len(names)}
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len(app.control.add_consumer(QUEUE, timeout=1, **to_these) or ()) < len(names):
            if time.monotonic() > deadline:
                raise BenchError(f"Not every worker has answered within {PATIENCE_SECONDS} s.")
        try:
            yield
        finally:
            app.control.cancel_consumer(QUEUE, timeout=PATIENCE_SECONDS, **to_these)

    def _wait(self, jobs: int, execution: TrackedExecution | None, redis: RedisMeter, show: Show) -> None:
        budget, before, moved = self.options.budget, -1, time.monotonic()
        while left := _waiting(redis) or _unfinished(jobs, execution, redis):
            self.cluster.check()
            if left != before:
                before, moved = left, time.monotonic()
            if time.monotonic() > moved + budget:
                raise BenchError(f"{left:,} of {jobs:,} jobs are left, and none has ended for {budget:g} s.")
            show(jobs - left)
            time.sleep(POLL_SECONDS)


def _waiting(redis: RedisMeter) -> int:
    redis.uncounted("llen")
    return redis.client.llen(QUEUE)


def _unfinished(jobs: int, execution: TrackedExecution | None, redis: RedisMeter) -> int:
    """Count the jobs that have left QUEUE and are not done."""
    if execution:
        return jobs - execution.progress().done
    redis.uncounted("hlen")
    return redis.client.hlen("unacked")
