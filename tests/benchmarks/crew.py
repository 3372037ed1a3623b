"""The crew: real workers and one beat, as processes like in production."""

import re
import signal
import subprocess
import sys
from pathlib import Path

from harbor_refresh.local.process import kill_tree, spawn, tail

ROOT = Path(__file__).resolve().parents[2]
DONE = re.compile(rb"Refresh outdate execution status done, (\d+) succeed, (\d+) failed")


class Crew:
    def __init__(self, directory: Path, workers: int, concurrency: int) -> None:
        self._directory = directory
        self._commands = {"beat": ["beat", "--loglevel=INFO"]} | {
            f"worker{n}": [
                "worker",
                "-c",
                str(concurrency),
                "-n",
                f"worker{n}@%h",
                "--loglevel=INFO",
            ]
            for n in range(1, workers + 1)
        }
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        for name, words in self._commands.items():
            self._running[name] = spawn(
                [sys.executable, "-m", "celery", "-A", "harbor_refresh", *words],
                log=self._log(name),
                death_signal=signal.SIGTERM,
                cwd=ROOT,
            )

    @property
    def pids(self) -> dict[str, list[int | None]]:
        """Process ids by kind: the beat, and the workers together."""
        kinds: dict[str, list[int | None]] = {"beat": [], "workers": []}
        for name, process in self._running.items():
            kinds["beat" if name == "beat" else "workers"].append(process.pid)
        return kinds

    def fallen(self) -> str | None:
        """The name and the last words of one that is not alive any more."""
        for name, process in self._running.items():
            if process.poll() is not None:
                return f"{name} ended with {process.returncode}:\n{tail(self._log(name))}"
        return None

    def stop(self) -> None:
        for process in self._running.values():
            process.send_signal(signal.SIGTERM)
        for process in self._running.values():
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                kill_tree(process)
        self._running.clear()

    def refreshed(self) -> tuple[int, int]:
        """How many refreshes succeeded and failed, by the lines the workers have logged."""
        succeeded = failed = 0
        for name in self._commands:
            for good, bad in DONE.findall(self._log(name).read_bytes()):
                succeeded, failed = succeeded + int(good), failed + int(bad)
        return succeeded, failed

    def _log(self, name: str) -> Path:
        return self._directory / f"{name}.log"
