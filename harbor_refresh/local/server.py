"""What the two embedded servers share: a directory, a port, a process, waiting for an answer."""

import shutil
import subprocess
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Self

from harbor_refresh.local import LocalError
from harbor_refresh.local.ports import choose_port, is_free
from harbor_refresh.local.process import Child, end, tail


class EmbeddedServer(Child, ABC):
    """A real server that this process owns; its data stays in `directory` between starts.

    The port is chosen when the object is made. If the wished port is taken, or becomes so before the first start,
    another is chosen; then it stays the same over restarts. `start` returns when the server answers, or raises
    LocalError with the tail of its log.
    """

    answer_within_seconds = 60.0
    #: How many ports it may still choose instead.
    _other_ports = 3

    def __init__(self, directory: Path, port: int | None = None) -> None:
        self.port = choose_port(port)
        self.directory = directory.absolute()
        self.log = self.directory / "server.log"

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

    def start(self) -> Self:
        """Start and wait until it answers; do nothing if it runs."""
        if self.running:
            return self
        self.log.parent.mkdir(parents=True, exist_ok=True)
        process = self._process = self._launch()
        deadline = time.monotonic() + self.answer_within_seconds
        while process.poll() is None and time.monotonic() < deadline:
            if self._answers():
                self._other_ports = 0
                return self
            time.sleep(0.02)
        self.kill()
        if self._other_ports and not is_free(self.port):
            self._other_ports -= 1
            self.port = choose_port(self.port)
            return self.start()
        raise LocalError(
            f"{self.name} did not start on 127.0.0.1:{self.port}. Its log ({self.log}) ends:\n{tail(self.log)}"
        )

    def stop(self) -> None:
        """Stop cleanly; `kill` is a crash. The next start finds the same port and the same data."""
        end([self], seconds=10)

    def discard(self) -> None:
        self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.stop()
