"""Celery workers and one beat, each a process as in production."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from benchmarks.servers import ROOT, Servers
from harbor_refresh.local.process import kill_tree, spawn, tail

DONE = re.compile(rb"Refresh outdate execution status done, (\d+) succeed, (\d+) failed")
STOP_SECONDS = 15


class Cluster:
    """Started on entry as a context manager, and stopped at its end.

    `include` names modules with tasks beside the product's. `environ` is added to the servers' environment. Each
    cluster logs to files of its own.
    """

    #: The argument of `celery -A`.
    app = "harbor_refresh"
    _made = 0

    def __init__(
        self, servers: Servers, workers: int, concurrency: int, *, include: Sequence[str] = (), **environ: str
    ) -> None:
        Cluster._made += 1
        self._directory = servers.directory / f"cluster{Cluster._made}"
        self._directory.mkdir()
        self._environ = servers.environ | environ
        self._commands = {"beat": ["beat", "--loglevel=INFO", "--pidfile="]} | {
            f"worker{n}": [
                *("worker", f"-c{concurrency}", "-n", f"worker{n}@%h", "--loglevel=INFO"),
                *(f"--include={module}" for module in include),
            ]
            for n in range(1, workers + 1)
        }
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self, *names: str) -> None:
        """Start these processes, or all of them."""
        for name in names or self._commands:
            self._running[name] = spawn(
                [sys.executable, "-m", "celery", "-A", self.app, *self._commands[name]],
                log=self._log(name),
                death_signal=signal.SIGTERM,
                cwd=ROOT,
                env=self._environ,
            )

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

    def failure(self) -> str | None:
        """Describe a process that has ended without `kill`, with the end of its log; None if there is none."""
        for name, process in self._running.items():
            if process.poll() is not None:
                return f"{name} ended with {process.returncode}:\n{tail(self._log(name))}"
        return None

    def kill(self, name: str) -> None:
        """Send SIGKILL to the process and its pool at once."""
        process = self._running.pop(name)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        kill_tree(process)

    def stop(self, *, cold: bool = False) -> None:
        """Shut down warm, so that running tasks come to their end; with `cold`, kill at once."""
        for process in self._running.values():
            process.send_signal(signal.SIGKILL if cold else signal.SIGTERM)
        for process in self._running.values():
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                kill_tree(process)
        self._running.clear()

    def refreshed(self) -> tuple[int, int]:
        """Count the refreshes that succeeded and failed, from the logs of the workers."""
        succeeded = failed = 0
        for name in self._commands:
            with suppress(FileNotFoundError):
                for good, bad in DONE.findall(self._log(name).read_bytes()):
                    succeeded, failed = succeeded + int(good), failed + int(bad)
        return succeeded, failed

    def _log(self, name: str) -> Path:
        return self._directory / f"{name}.log"
