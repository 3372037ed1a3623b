"""What the two embedded servers share: a directory, a port, a process, waiting for an answer."""

import shutil
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path
from typing import Self

from harbor_refresh.local.errors import LocalError
from harbor_refresh.local.ports import choose_port
from harbor_refresh.local.process import kill_tree, tail


class EmbeddedServer(ABC):
    """A real server that this process owns; its data stays in `directory` between starts.

    The port is chosen when the object is made and stays the same over restarts. If the wished port is taken,
    another is chosen. `start` returns when the server answers, or raises LocalError with the tail of its log.
    """

    name: str
    #: The signal for a clean stop.
    stop_signal = signal.SIGTERM
    answer_within_seconds = 60.0

    def __init__(self, directory: Path, port: int | None = None) -> None:
        self.port = choose_port(port)
        self.directory = directory.absolute()
        self.log = self.directory / "server.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process and self.running else None

    @property
    def running(self) -> bool:
        """Whether the process is alive, answering or not."""
        return self._process is not None and self._process.poll() is None

    @property
    @abstractmethod
    def url(self) -> str:
        """The address in the form of DATABASE_URL or REDIS_URL."""

    @abstractmethod
    def _launch(self) -> subprocess.Popen[bytes]:
        """Prepare the directory and start the process on `self.port`."""

    @abstractmethod
    def _answers(self) -> bool:
        """Whether a client gets a correct answer now."""

    def _once_up(self) -> None:  # noqa: B027 - most have nothing to do
        """Do what each start needs before `start` returns."""

    def start(self) -> Self:
        """Start and wait until it answers; do nothing if it runs."""
        if self.running:
            return self
        self.log.parent.mkdir(parents=True, exist_ok=True)
        process = self._process = self._launch()
        deadline = time.monotonic() + self.answer_within_seconds
        while process.poll() is None and time.monotonic() < deadline:
            if self._answers():
                self._once_up()
                return self
            time.sleep(0.02)
        self.kill()
        raise LocalError(
            f"{self.name} did not start on 127.0.0.1:{self.port}. Its log ({self.log}) ends:\n{tail(self.log)}"
        )

    def stop(self, *, immediate: bool = False, timeout: float = 10.0) -> None:
        """Stop cleanly; after `timeout`, or if `immediate`, by SIGKILL."""
        if self._process is not None and not immediate:
            self._process.send_signal(self.stop_signal)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout)
        self.kill()

    def kill(self) -> None:
        """SIGKILL it and its children, like a crash; the data stays as it is at that moment."""
        if self._process is not None:
            kill_tree(self._process)
            self._process = None

    def restart(self, *, immediate: bool = False) -> None:
        """Stop (`immediate`: by SIGKILL) and start again on the same port with the same data."""
        self.stop(immediate=immediate)
        self.start()

    def discard(self) -> None:
        self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.stop()
