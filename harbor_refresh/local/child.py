"""One process that is kept running, and the pauses before it is started again."""

import os
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

from harbor_refresh.local.process import spawn
from harbor_refresh.local.services import Service

if TYPE_CHECKING:
    import subprocess


class Watched(Protocol):
    """A process that is kept running: a child or an embedded server."""

    name: str
    log: Path

    @property
    def running(self) -> bool: ...

    def start(self) -> object: ...


class Child:
    """A service as a process in its own process group."""

    def __init__(self, service: Service, *, cwd: Path, environ: Mapping[str, str], log: Path) -> None:
        self.name = service.name
        self.log = log
        self._service = service
        self._cwd = cwd
        self._environ = {**environ, **service.environ}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """Its exit code (negative: the signal that ended it); None while it runs."""
        return self._process.poll() if self._process else None

    def start(self) -> Self:
        self.kill()  # processes of the group that an earlier start may have left
        self._process = spawn(
            self._service.argv,
            log=self.log,
            death_signal=self._service.death_signal,
            cwd=self._cwd,
            env=self._environ,
        )
        return self

    def ask_to_stop(self) -> None:
        """Send SIGTERM to the process itself, which ends its children."""
        if self._process is not None and self.running:
            self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL the whole group, even if the process itself has ended and left other processes in it."""
        if self._process is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


class Patience:
    """When to start a process again that died: soon, then later, then never.

    The pauses double from 1 to 30 seconds. After more than `tries` deaths in a row the process is not started
    again. If it ran for a minute, the count begins again.
    """

    longest_pause_seconds = 30.0
    well_after_seconds = 60.0

    def __init__(self, watched: Watched, tries: int = 8) -> None:
        self.watched = watched
        self.deaths = 0
        self.start_at: float | None = None
        self._tries = tries
        self._started = time.monotonic()

    @property
    def given_up(self) -> bool:
        return self.deaths > self._tries

    def note_death(self, now: float) -> float | None:
        """Count a death; return the pause before the next start, or None if there is no next start."""
        if now - self._started >= self.well_after_seconds:
            self.deaths = 0
        self.deaths += 1
        if self.given_up:
            return None
        pause = min(2.0 ** (self.deaths - 1), self.longest_pause_seconds)
        self.start_at = now + pause
        return pause

    def note_start(self, now: float) -> None:
        self.start_at = None
        self._started = now
