"""Processes of a run: started together, killed by name, and stopped at the end."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from benchmarks.servers import ROOT, Servers
from harbor_refresh.local.process import kill_tree, spawn, tail

STOP_SECONDS = 15


class Processes:
    """Started on entry as a context manager, and stopped at its end. Each logs to a file of its own."""

    _made = 0

    def __init__(self, servers: Servers, commands: Mapping[str, Sequence[str]], **environ: str) -> None:
        Processes._made += 1
        self._directory = servers.directory / f"processes{Processes._made}"
        self._directory.mkdir()
        self._environ = servers.environ | environ
        self._commands = dict(commands)
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
                self._commands[name],
                log=self.log(name),
                death_signal=signal.SIGTERM,
                cwd=ROOT,
                env=self._environ,
            )

    def failure(self) -> str | None:
        """Describe a process that has ended without `kill`, with the end of its log; None if there is none."""
        for name, process in self._running.items():
            if process.poll() is not None:
                return f"{name} ended with {process.returncode}:\n{tail(self.log(name))}"
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

    def log(self, name: str) -> Path:
        return self._directory / f"{name}.log"
