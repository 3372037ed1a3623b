"""Celery workers and one beat, each a process as in production."""

import re
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress

from benchmarks.processes import Processes
from benchmarks.servers import Servers

DONE = re.compile(rb"Refresh outdate execution status done, (\d+) succeed, (\d+) failed")


class Cluster(Processes):
    """`include` names modules with tasks beside the product's. `environ` is added to the servers' environment."""

    #: The argument of `celery -A`.
    app = "harbor_refresh"
    #: The names of the workers begin with this.
    prefix = "worker"
    has_beat = True

    def __init__(
        self, servers: Servers, workers: int, concurrency: int, *, include: Sequence[str] = (), **environ: str
    ) -> None:
        celery = (sys.executable, "-m", "celery", "-A", self.app)
        beat = {"beat": [*celery, "beat", "--loglevel=INFO", "--pidfile="]} if self.has_beat else {}
        commands = beat | {
            f"{self.prefix}{n}": [
                *celery,
                *("worker", f"-c{concurrency}", "-n", f"{self.prefix}{n}@%h", "--loglevel=INFO"),
                *[f"--include={','.join(include)}"] * bool(include),
            ]
            for n in range(1, workers + 1)
        }
        super().__init__(servers, commands, **environ)

    @property
    def pids(self) -> dict[str, list[int | None]]:
        """Process ids by kind: the beat, and the workers together."""
        kinds: dict[str, list[int | None]] = {"beat": [], "workers": []}
        for name, process in self._running.items():
            kinds["beat" if name == "beat" else "workers"].append(process.pid)
        return kinds

    @property
    def workers(self) -> list[str]:
        return [name for name in self._running if name != "beat"]

    @property
    def celery_names(self) -> list[str]:
        """The names by which Celery's remote control knows the workers."""
        return [f"{name}@{socket.gethostname()}" for name in self.workers]

    def refreshed(self) -> tuple[int, int]:
        """Count the refreshes that succeeded and failed, from the logs of the workers."""
        succeeded = failed = 0
        for name in self._commands:
            with suppress(FileNotFoundError):
                for good, bad in DONE.findall(self.log(name).read_bytes()):
                    succeeded, failed = succeeded + int(good), failed + int(bad)
        return succeeded, failed
