"""Celery's own parent of many tasks: a group, and how many of its members have their result.

The group is a real one, and a real worker carries it out; nothing is written past Celery.
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
from benchmarks.ground import ROOT, Ground
from benchmarks.noop import FIRST, REST, app, noop
from harbor_refresh.local.process import kill_tree, spawn, tail

if TYPE_CHECKING:
    import subprocess

LOOK_SECONDS = 0.2


class Group:
    """Published and saved when it is made; its first `half` members can be carried out before the rest."""

    def __init__(self, ground: Ground, tasks: int, half: int) -> None:
        self._ground = ground
        queues = [FIRST if number < half else REST for number in range(tasks)]
        result: Any = group(noop.s().set(queue=queue) for queue in queues).apply_async()
        result.save()
        self._id = result.id

    def completed(self) -> int:
        """Asked as a page does that knows the group's id: nothing is remembered from the last time."""
        found: Any = GroupResult.restore(self._id, app=app)
        return int(found.completed_count())

    def carry_out(self, queue: str, until: int, budget: float) -> None:
        """A worker takes all of that queue and ends when so many members have their result.

        The group is asked when the queue is empty and not before: asking takes as long as the work.
        """
        with self._worker(queue) as worker, Redis.from_url(self._ground.redis_url) as broker:
            deadline = time.monotonic() + budget
            while broker.llen(queue) or self.completed() < until:
                if worker.poll() is not None or time.monotonic() > deadline:
                    left = f"{broker.llen(queue):,} tasks wait"
                    raise BenchError(f"Celery's group was not carried out: {left}.\n{tail(self._log)}")
                time.sleep(LOOK_SECONDS)

    @property
    def _log(self) -> Any:
        return self._ground.directory / "group.log"

    @contextmanager
    def _worker(self, queue: str) -> Iterator["subprocess.Popen[bytes]"]:
        process = spawn(
            [sys.executable, "-m", "celery", "-A", "benchmarks.noop", "worker", "-Q", queue, "-c2"],
            log=self._log,
            death_signal=signal.SIGTERM,
            cwd=ROOT,
            env=self._ground.environ,
        )
        try:
            yield process
        finally:
            kill_tree(process)
