"""Celery's own parent of many tasks: a group, and the number of its tasks that have a result.

The group is run by a real worker; nothing is written to the result backend directly.
"""

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from celery import group
from celery.result import GroupResult
from redis import Redis

from benchmarks.errors import BenchError
from benchmarks.noop_app import QUEUE, app, noop
from benchmarks.servers import ROOT, Servers
from harbor_refresh.local.process import kill_tree, spawn, tail

if TYPE_CHECKING:
    import subprocess

POLL_SECONDS = 0.2


class Group:
    """Published and saved on creation."""

    def __init__(self, servers: Servers, tasks: int) -> None:
        self._servers, self._tasks = servers, tasks
        result: Any = group(noop.s().set(queue=QUEUE) for _ in range(tasks)).apply_async()
        result.save()
        self._id = result.id

    def completed(self) -> int:
        """Count as a page does that knows the group's id only; nothing is cached between two calls."""
        found: Any = GroupResult.restore(self._id, app=app)
        return int(found.completed_count())

    def carry_out(self, budget: float) -> None:
        """Run a worker until all tasks have a result.

        The group is asked only when the queue is empty, because asking takes as long as running the tasks.
        """
        with self._worker() as worker, Redis.from_url(self._servers.redis_url) as broker:
            deadline = time.monotonic() + budget
            while broker.llen(QUEUE) or self.completed() < self._tasks:
                if worker.poll() is not None or time.monotonic() > deadline:
                    left = f"{broker.llen(QUEUE):,} tasks wait"
                    raise BenchError(f"Celery's group was not carried out: {left}.\n{tail(self._log)}")
                time.sleep(POLL_SECONDS)

    @property
    def _log(self) -> Any:
        return self._servers.directory / "group.log"

    @contextmanager
    def _worker(self) -> Iterator["subprocess.Popen[bytes]"]:
        process = spawn(
            [sys.executable, "-m", "celery", "-A", "benchmarks.noop_app", "worker", "-Q", QUEUE, "-c2"],
            log=self._log,
            death_signal=signal.SIGTERM,
            cwd=ROOT,
            env=self._servers.environ,
        )
        try:
            yield process
        finally:
            kill_tree(process)
