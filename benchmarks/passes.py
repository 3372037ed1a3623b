"""A pass: messages that are out already are given to workers that are ready, until all is done.

What the messages cost to publish is not in it. Tracked jobs are done when every task is final in the database;
plain ones when the last message is acknowledged.
"""

import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks.errors import BenchError
from benchmarks.figures import metered
from benchmarks.ground import Ground
from benchmarks.meters import RedisMeter
from benchmarks.nothing import QUEUE, Publish
from benchmarks.rows import Row
from benchmarks.screen import Show
from benchmarks.shift import Shift
from harbor_refresh.celery import app
from tasks.jobs import TrackedExecution

LOOK_SECONDS = 0.02
PATIENCE_SECONDS = 10


@dataclass(frozen=True)
class Passes:
    """By these workers, one pass after the other."""

    ground: Ground
    options: Namespace
    crew: Shift

    def run(self, publish: Publish, jobs: int, show: Show = lambda done: None) -> Row:
        """Publish so many and have them done. The status of the execution, which follows, is waited for and not
        measured."""
        row = Row("", self.options.workers * self.options.concurrency, 1)
        execution = publish(jobs)
        with metered(self.ground) as meters:
            meters.start(self.crew.crew.pids)
            with self._taking():
                self._wait(jobs, execution, meters.redis, show)
                meters.stop()
            meters.fill(row)
        if execution:
            execution.wait(self.options.budget)
        return row

    @contextmanager
    def _taking(self) -> Iterator[None]:
        """The workers take from the queue from now on, and no longer than this. The first time they may be
        ready and not yet listen."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not app.control.add_consumer(QUEUE, reply=True, limit=1, timeout=1):
            if time.monotonic() > deadline:
                raise BenchError(f"No worker has answered within {PATIENCE_SECONDS} s.")
        try:
            yield
        finally:
            app.control.cancel_consumer(QUEUE, reply=True, limit=1, timeout=PATIENCE_SECONDS)

    def _wait(self, jobs: int, execution: TrackedExecution | None, redis: RedisMeter, show: Show) -> None:
        budget = self.options.budget
        deadline = time.monotonic() + budget
        while left := _waiting(redis) or _unfinished(jobs, execution, redis):
            self.crew.look()
            if time.monotonic() > deadline:
                raise BenchError(
                    f"{left:,} of {jobs:,} jobs are left after {budget:g} s. Give more with --budget."
                )
            show(jobs - left)
            time.sleep(LOOK_SECONDS)


def _waiting(redis: RedisMeter) -> int:
    redis.uncounted("llen")
    return redis.client.llen(QUEUE)


def _unfinished(jobs: int, execution: TrackedExecution | None, redis: RedisMeter) -> int:
    """Of those that no longer wait."""
    if execution:
        return jobs - execution.progress().done
    redis.uncounted("hlen")
    return redis.client.hlen("unacked")
